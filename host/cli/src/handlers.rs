//! Which handler runs: what the command line names, and what the session asks for.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pugmark_runtime::process::{ProcessFailure, ProcessSpec, loopback_bypass};
use pugmark_runtime::sandbox::{LoadError, Sandbox, Settings, is_wasm};
use pugmark_runtime::{Handler, RemoteHandler, RpcHandler, StepError};
use url::Url;

use crate::context::cache_dir;
use crate::error::Error;
use crate::output::note;
use crate::stored::{Stored, Which};

/// How long a step outside the sandbox may take unless --timeout says otherwise.
const TIMEOUT: Duration = Duration::from_mins(15);

/// A handler that the command line or the session names.
pub struct Route {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

/// Where a handler is.
pub enum Place {
    /// At hand: its program, component or address, and arguments.
    Command(Vec<OsString>),
    /// In the bucket, in this version.
    Bucket(Which),
}

/// How handlers outside the sandbox are run.
#[derive(Clone, Copy)]
pub struct Manner {
    /// How long a step may take, if the user says.
    pub timeout: Option<Duration>,
    /// Whether programs are kept between steps and called over HTTP.
    pub rpc: bool,
}

/// All of them.
pub struct Routes(Vec<Route>);

impl Routes {
    /// From `--handler NAME=COMMAND`s and `--handler NAME`s, or else from the command itself.
    ///
    /// # Errors
    /// If there is none, or one that cannot be read.
    pub fn parse(named: &[String], command: &[OsString]) -> Result<Self, Error> {
        if let Some(program) = command.first() {
            let place = Place::Command(command.to_vec());
            return Ok(Self(vec![Route { name: name_of(program), place }]));
        }
        if named.is_empty() {
            return Err(Error::invalid(
                "there is no handler to run",
                "give one after `--`, as in `pugmark run -- python agent.py`, or with --handler; or \
                 `pugmark start --handler NAME` a session with one of `pugmark handlers`",
            ));
        }
        let mut routes: Vec<Route> = Vec::new();
        for text in named {
            let route = parse_route(text)?;
            if routes.iter().any(|other| other.name == route.name) {
                let message = format!("the handler `{}` is given twice", route.name);
                return Err(Error::invalid(message, None));
            }
            routes.push(route);
        }
        Ok(Self(routes))
    }

    /// Each of them.
    pub fn into_vec(self) -> Vec<Route> {
        self.0
    }

    /// The handler that a session asks for; where it asks for none, the first.
    ///
    /// A single command after `--` serves every session, under the name that the session asks for.
    ///
    /// # Errors
    /// If the session asks for one that is not given.
    pub fn choose(mut self, wanted: Option<&str>, by_name: bool) -> Result<Route, Error> {
        let Some(wanted) = wanted else { return Ok(self.0.remove(0)) };
        if !by_name {
            let route = self.0.remove(0);
            return Ok(Route { name: wanted.to_owned(), ..route });
        }
        let names: Vec<String> = self.0.iter().map(|route| route.name.clone()).collect();
        self.0.into_iter().find(|route| route.name == wanted).ok_or_else(|| {
            let message = format!("the session asks for the handler `{wanted}`");
            Error::not_found(message, format!("given with --handler: {}", names.join(", ")))
        })
    }
}

/// What a handler is called that has no name: by its file, or by the end of its address.
fn name_of(program: &OsStr) -> String {
    if let Some(url) = address(program) {
        let last = url.path_segments().and_then(|mut segments| segments.rfind(|s| !s.is_empty()));
        return last.or(url.host_str()).unwrap_or("handler").to_owned();
    }
    Path::new(program).file_stem().unwrap_or(program).to_string_lossy().into_owned()
}

/// The address that a handler is named by, if it is one and no program.
fn address(program: &OsStr) -> Option<Url> {
    let text = program.to_str()?;
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && text.contains("://")).then_some(url)
}

fn parse_route(text: &str) -> Result<Route, Error> {
    let invalid = |reason: String| {
        let hint = "write --handler NAME='program arguments', NAME=./component.wasm, \
                    NAME=https://host/path or, for one of the bucket, NAME";
        Error::invalid(format!("`{text}` is not a handler: {reason}"), hint)
    };
    let Some((name, command)) = text.split_once('=') else {
        let Stored { name, which } = Stored::parse(text)?;
        return Ok(Route { name, place: Place::Bucket(which) });
    };
    let argv = shell_words::split(command).map_err(|error| invalid(error.to_string()))?;
    if name.is_empty() || argv.is_empty() {
        return Err(invalid("its name or its command is empty".to_owned()));
    }
    let place = Place::Command(argv.into_iter().map(Into::into).collect());
    Ok(Route { name: name.to_owned(), place })
}

/// Makes a handler that is at hand ready: an address is called, a file that is WebAssembly by its first bytes goes
/// into the sandbox, and anything else is a program.
///
/// # Errors
/// If it is not there, or WebAssembly that cannot be a handler; or if it is in a bucket.
pub fn load(route: &Route, manner: Manner) -> Result<Handler, Error> {
    let timeout = manner.timeout.unwrap_or(TIMEOUT);
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let Place::Command(argv) = &route.place else {
        let message = format!("`{}` is no handler at hand: it has no command", route.name);
        return Err(Error::invalid(message, "write NAME='program arguments'"));
    };
    if let Some(url) = address(&argv[0]) {
        return load_remote(argv, &url, timeout_ms);
    }
    let path = Path::new(&argv[0]);
    let named_wasm =
        path.extension().is_some_and(|extension| extension == "wasm" || extension == "cwasm");
    if named_wasm || begins_as_wasm(path) {
        return load_component(argv, path);
    }
    check_program(&route.name, argv)?;
    let spec = ProcessSpec {
        argv: argv.clone(),
        timeout_ms,
        environment: loopback_bypass(|name| std::env::var_os(name)),
    };
    if manner.rpc { Ok(Handler::Rpc(RpcHandler::new(spec)?)) } else { Ok(Handler::Process(spec)) }
}

fn load_remote(argv: &[OsString], url: &Url, timeout_ms: u64) -> Result<Handler, Error> {
    if argv.len() > 1 {
        let hint = "what a handler at an address is to know belongs into the address";
        return Err(Error::invalid("a handler at an address takes no arguments", hint));
    }
    let handler = RemoteHandler::new(url.as_str(), timeout_ms)?;
    handler
        .map(Handler::Remote)
        .ok_or_else(|| Error::invalid(format!("`{url}` is no address that can be called"), None))
}

fn load_component(argv: &[OsString], path: &Path) -> Result<Handler, Error> {
    let unusable = |source: LoadError| Error::Load { path: path.display().to_string(), source };
    let component = Sandbox::new(settings()).and_then(|s| s.load_file(path)).map_err(unusable)?;
    let args = argv[1..].iter().map(|arg| {
        arg.to_str().map(str::to_owned).ok_or_else(|| {
            let message = format!("the argument `{}` is not UTF-8", arg.to_string_lossy());
            Error::invalid(message, "a sandboxed handler takes text only")
        })
    });
    Ok(Handler::Component { component, args: args.collect::<Result<_, _>>()? })
}

/// What this program makes sandboxes with: compiled code is kept for the user, and compiled in a
/// child process.
pub fn settings() -> Settings {
    let compiler = std::env::current_exe()
        .ok()
        .map(|program| vec![program.into_os_string(), OsString::from("compile-component")]);
    Settings {
        cache_dir: cache_dir().ok(),
        compiler,
        notice: Arc::new(note),
        ..Settings::default()
    }
}

/// Fails as starting the program would, if it is not there: before a session is made for it.
fn check_program(name: &str, argv: &[OsString]) -> Result<(), Error> {
    let program = Path::new(&argv[0]);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = match program.components().count() {
        1 => std::env::split_paths(&folders).any(|folder| folder.join(program).is_file()),
        _ => program.is_file(),
    };
    if found {
        return Ok(());
    }
    let program = program.display().to_string();
    let source = rustix::io::Errno::NOENT.into();
    let failure = ProcessFailure::CannotStart { program, source };
    Err(StepError::Failed { agent: name.to_owned(), source: failure.into() }.into())
}

/// Whether the file is WebAssembly by its first bytes, whatever its name.
fn begins_as_wasm(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && is_wasm(&magic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(named: &[&str], command: &[&str], wanted: Option<&str>) -> Result<Route, Error> {
        let named: Vec<String> = named.iter().map(|&s| s.to_owned()).collect();
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        Routes::parse(&named, &command)?.choose(wanted, !named.is_empty())
    }

    #[test]
    fn the_session_chooses_among_named_handlers() {
        let named = ["python=python 'my agent.py'", "bash=bash worker.sh"];
        let Route { name, place: Place::Command(argv) } =
            chosen(&named, &[], Some("bash")).unwrap()
        else {
            panic!("it is a command")
        };
        assert_eq!((name.as_str(), argv), ("bash", vec!["bash".into(), "worker.sh".into()]));
        let Route { name, place: Place::Command(argv) } = chosen(&named, &[], None).unwrap() else {
            panic!("it is a command")
        };
        assert_eq!((name.as_str(), argv), ("python", vec!["python".into(), "my agent.py".into()]));
        assert!(matches!(chosen(&named, &[], Some("ruby")), Err(Error::NotFound { .. })));
    }

    #[test]
    fn a_name_alone_is_one_of_the_bucket() {
        let named = ["python=python agent.py", "triage@3"];
        let route = chosen(&named, &[], Some("triage")).unwrap();
        assert!(matches!(route.place, Place::Bucket(Which::Version(3))));
        let manner = Manner { timeout: None, rpc: false };
        assert!(matches!(load(&route, manner), Err(Error::Invalid { .. })));
    }

    #[test]
    fn a_command_serves_every_session() {
        assert_eq!(chosen(&[], &["./triage.wasm"], None).unwrap().name, "triage");
        assert_eq!(chosen(&[], &["./triage.wasm"], Some("review")).unwrap().name, "review");
    }

    #[test]
    fn an_address_is_called() {
        let manner = Manner { timeout: None, rpc: false };
        for (url, name) in [
            ("http://127.0.0.1:8080", "127.0.0.1"),
            ("http://127.0.0.1:8080/agents/triage/?key=1", "triage"),
        ] {
            let route = chosen(&[], &[url], None).unwrap();
            assert_eq!(route.name, name);
            assert!(matches!(load(&route, manner), Ok(Handler::Remote(_))), "{url}");
        }
        let route = chosen(&["a=http://h/ x"], &[], None).unwrap();
        assert!(matches!(load(&route, manner), Err(Error::Invalid { .. })));
    }

    #[test]
    fn a_program_may_stay() {
        let route = chosen(&[], &["sh", "-c", "true"], None).unwrap();
        let load = |rpc| load(&route, Manner { timeout: None, rpc });
        assert!(matches!(load(true), Ok(Handler::Rpc(_))));
        assert!(matches!(load(false), Ok(Handler::Process(_))));
    }

    #[test]
    fn refuses_what_names_no_handler() {
        for named in ["python@", "=x", "a=", "a='x"] {
            assert!(chosen(&[named], &[], None).is_err(), "{named}");
        }
        assert!(chosen(&["a=x", "a=y"], &[], None).is_err());
        assert!(chosen(&[], &[], None).is_err());
    }
}

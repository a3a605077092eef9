//! Which handler runs: what the command line names, and what the session asks for.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pugmark_runtime::process::{ProcessFailure, ProcessSpec, loopback_bypass};
use pugmark_runtime::sandbox::{LoadError, Sandbox, Settings, is_wasm};
use pugmark_runtime::{Handler, StepError};

use crate::context::cache_dir;
use crate::error::Error;
use crate::output::note;

/// A handler that the command line names.
pub struct Route {
    /// Its name.
    pub name: String,
    /// Its program or component, and arguments.
    pub argv: Vec<OsString>,
}

/// All of them.
pub struct Routes(Vec<Route>);

impl Routes {
    /// From `--handler NAME=COMMAND`s, or else from the command itself.
    ///
    /// # Errors
    /// If there is none, or one that cannot be read.
    pub fn parse(named: &[String], command: &[OsString]) -> Result<Self, Error> {
        if let Some(program) = command.first() {
            let stem = Path::new(program).file_stem().unwrap_or(program);
            let name = stem.to_string_lossy().into_owned();
            return Ok(Self(vec![Route { name, argv: command.to_vec() }]));
        }
        if named.is_empty() {
            return Err(Error::invalid(
                "there is no handler to run",
                "give one after `--`, as in `pugmark run -- python agent.py`, or with --handler",
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

fn parse_route(text: &str) -> Result<Route, Error> {
    let invalid = |reason: String| {
        let hint = "write --handler NAME='program arguments' or NAME=./component.wasm";
        Error::invalid(format!("`{text}` is not a handler: {reason}"), hint)
    };
    let (name, command) =
        text.split_once('=').ok_or_else(|| invalid("there is no `=`".to_owned()))?;
    let argv = shell_words::split(command).map_err(|error| invalid(error.to_string()))?;
    if name.is_empty() || argv.is_empty() {
        return Err(invalid("its name or its command is empty".to_owned()));
    }
    Ok(Route { name: name.to_owned(), argv: argv.into_iter().map(Into::into).collect() })
}

/// Makes a handler ready: a file that is WebAssembly by its first bytes goes into the sandbox.
///
/// # Errors
/// If it is WebAssembly that cannot be a handler.
pub fn load(route: &Route, timeout: Duration) -> Result<Handler, Error> {
    let path = Path::new(&route.argv[0]);
    let named_wasm =
        path.extension().is_some_and(|extension| extension == "wasm" || extension == "cwasm");
    if !named_wasm && !begins_as_wasm(path) {
        check_program(route)?;
        return Ok(Handler::Process(ProcessSpec {
            argv: route.argv.clone(),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            environment: loopback_bypass(|name| std::env::var_os(name)),
        }));
    }
    let unusable = |source: LoadError| Error::Load { path: path.display().to_string(), source };
    let compiler = std::env::current_exe()
        .ok()
        .map(|program| vec![program.into_os_string(), OsString::from("compile-component")]);
    let settings = Settings {
        cache_dir: cache_dir().ok(),
        compiler,
        notice: Arc::new(note),
        ..Settings::default()
    };
    let component = Sandbox::new(settings).and_then(|s| s.load_file(path)).map_err(unusable)?;
    let args = route.argv[1..].iter().map(|arg| {
        arg.to_str().map(str::to_owned).ok_or_else(|| {
            let message = format!("the argument `{}` is not UTF-8", arg.to_string_lossy());
            Error::invalid(message, "a sandboxed handler takes text only")
        })
    });
    Ok(Handler::Component { component, args: args.collect::<Result<_, _>>()? })
}

/// Fails as starting the program would, if it is not there: before a session is made for it.
fn check_program(route: &Route) -> Result<(), Error> {
    let program = Path::new(&route.argv[0]);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = match program.components().count() {
        1 => std::env::split_paths(&folders).any(|folder| folder.join(program).is_file()),
        _ => program.is_file(),
    };
    if found {
        return Ok(());
    }
    let program = program.display().to_string();
    let source = std::io::ErrorKind::NotFound.into();
    let failure = ProcessFailure::CannotStart { program, source };
    Err(StepError::Failed { agent: route.name.clone(), source: failure.into() }.into())
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
        let route = chosen(&named, &[], Some("bash")).unwrap();
        assert_eq!(
            (route.name.as_str(), route.argv),
            ("bash", vec!["bash".into(), "worker.sh".into()])
        );
        let first = chosen(&named, &[], None).unwrap();
        assert_eq!(
            (first.name.as_str(), first.argv),
            ("python", vec!["python".into(), "my agent.py".into()])
        );
        assert!(matches!(chosen(&named, &[], Some("ruby")), Err(Error::NotFound { .. })));
    }

    #[test]
    fn a_command_serves_every_session() {
        assert_eq!(chosen(&[], &["./triage.wasm"], None).unwrap().name, "triage");
        assert_eq!(chosen(&[], &["./triage.wasm"], Some("review")).unwrap().name, "review");
    }

    #[test]
    fn refuses_what_names_no_handler() {
        for named in ["python", "=x", "a=", "a='x"] {
            assert!(chosen(&[named], &[], None).is_err(), "{named}");
        }
        assert!(chosen(&["a=x", "a=y"], &[], None).is_err());
        assert!(chosen(&[], &[], None).is_err());
    }
}

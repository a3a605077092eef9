//! Compiles components, in a child process that cannot take the host down with it.
//!
//! A component decides how much its compilation takes, so the child limits its own memory and
//! processor time, and the parent limits wall-clock time. The child is this very program, started
//! with an argument of the command line's choice. It reads one line of JSON and the component from
//! its standard input, writes compiled code to its standard output, and says what went wrong on its
//! standard error. All three are files, so nobody waits for anybody.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use wasmtime::Engine;

use super::engine;
use super::load_error::LoadError;
use super::settings::Settings;
use super::tuning::Tuning;

/// After how long the user is told what takes so long.
const NOTICE_AFTER: Duration = Duration::from_millis(300);

/// Bytes of what a failed child said that are shown.
const MAX_REASON_BYTES: u64 = 2_000;

/// Address space that the child may have besides its memory: its own code, stacks and the parts of
/// its heap that it reserves and does not use, for each thread.
const SPARE_ADDRESS_BYTES: u64 = 512 << 20;

/// The longest first line of the child's input.
const MAX_ORDER_BYTES: u64 = 4096;

/// What a child is told before the component.
#[derive(Serialize, Deserialize)]
struct Order {
    memory_bytes: u64,
    time_s: u64,
    tuning: Tuning,
}

/// Compiled code of a component.
///
/// # Errors
/// If the component is not valid, or cannot be compiled within the limits.
pub(super) fn compile(
    engine: &Engine,
    settings: &Settings,
    name: &str,
    component: &[u8],
) -> Result<Vec<u8>, LoadError> {
    let failed = |reason: String| LoadError::Compile { name: name.to_owned(), reason };
    let Some(program) = &settings.compiler else {
        return engine.precompile_component(component).map_err(|e| failed(format!("{e:#}")));
    };
    let (mut child, code, said) = start(program, settings, component)
        .map_err(|error| failed(format!("the compiler cannot be started: {error}")))?;
    let status = wait(&mut child, settings, name, component.len())
        .map_err(|error| failed(format!("the compiler is lost: {error}")))?;
    let Some(status) = status else {
        return Err(failed(format!("it takes longer than {} ms", settings.compile_time_ms)));
    };
    if !status.success() {
        return Err(failed(reason_of(status, said, settings)));
    }
    contents(code, u64::MAX).map_err(|error| failed(error.to_string()))
}

/// The entry point of the child. The caller writes an error to standard error and exits with a code
/// that is not 0.
///
/// # Errors
/// Says what went wrong, for the parent to repeat.
pub fn compile_child(input: impl Read, mut output: impl Write) -> Result<(), String> {
    let mut input = BufReader::new(input);
    let mut line = String::new();
    let read = input.by_ref().take(MAX_ORDER_BYTES).read_line(&mut line);
    read.map_err(|error| error.to_string())?;
    let order: Order = serde_json::from_str(&line)
        .map_err(|_| "this command is for pugmark itself, not for people".to_owned())?;
    limit(&order).map_err(|error| format!("the limits cannot be set: {error}"))?;
    let mut component = Vec::new();
    input.read_to_end(&mut component).map_err(|error| error.to_string())?;
    let engine = engine::build(&order.tuning).map_err(|error| format!("{error:#}"))?;
    let code = engine.precompile_component(&component).map_err(|error| format!("{error:#}"))?;
    output.write_all(&code).and_then(|()| output.flush()).map_err(|error| error.to_string())
}

/// Limits this process, for good.
fn limit(order: &Order) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let address_bytes = order
        .memory_bytes
        .saturating_add(SPARE_ADDRESS_BYTES)
        .saturating_add(threads.saturating_mul(80 << 20));
    // Processor time is that of all threads together; the parent watches the clock on the wall.
    let processor_s = order.time_s.saturating_mul(threads);
    lower(Resource::Data, order.memory_bytes)?;
    lower(Resource::As, address_bytes)?;
    lower(Resource::Cpu, processor_s)?;
    lower(Resource::Fsize, order.memory_bytes)?;
    lower(Resource::Core, 0)
}

/// Sets a limit, never above what the process may have already.
fn lower(resource: Resource, value: u64) -> io::Result<()> {
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    Ok(())
}

/// Starts a child; answers with it and the files of what it writes and says.
fn start(
    program: &[OsString],
    settings: &Settings,
    component: &[u8],
) -> io::Result<(Child, File, File)> {
    let (program, arguments) =
        program.split_first().ok_or_else(|| io::Error::other("it has no name"))?;
    let time_s = settings.compile_time_ms.div_ceil(1000);
    let memory_bytes = settings.compile_memory_bytes;
    let order = Order { memory_bytes, time_s, tuning: settings.tuning };
    let mut input = tempfile::tempfile()?;
    serde_json::to_writer(&input, &order)?;
    input.write_all(b"\n")?;
    input.write_all(component)?;
    input.rewind()?;
    let (code, said) = (tempfile::tempfile()?, tempfile::tempfile()?);
    // What compiles code that nobody has looked at yet has no use for the user's secrets.
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .stdin(input)
        .stdout(code.try_clone()?)
        .stderr(said.try_clone()?)
        .spawn()?;
    Ok((child, code, said))
}

/// Waits for a child; `None` if it was ended because it took too long.
fn wait(
    child: &mut Child,
    settings: &Settings,
    name: &str,
    bytes: usize,
) -> io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    let limit = Duration::from_millis(settings.compile_time_ms);
    let mut pause = Duration::from_millis(1);
    let mut noticed = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        if !noticed && began.elapsed() >= NOTICE_AFTER {
            noticed = true;
            (settings.notice)(&format!("compiling {name} ({}), once…", megabytes(bytes)));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Why a child failed.
fn reason_of(status: ExitStatus, said: File, settings: &Settings) -> String {
    let signal = status.signal();
    // An allocation that fails aborts the process.
    if signal == Some(Signal::ABORT.as_raw()) {
        return format!("it takes more than {} bytes of memory", settings.compile_memory_bytes);
    }
    if signal == Some(Signal::XCPU.as_raw()) || signal == Some(Signal::KILL.as_raw()) {
        return "it takes more processor time or memory than it may have".to_owned();
    }
    if signal == Some(Signal::XFSZ.as_raw()) {
        return format!("its code is over {} bytes", settings.compile_memory_bytes);
    }
    let said = contents(said, MAX_REASON_BYTES).unwrap_or_default();
    match String::from_utf8_lossy(&said).trim() {
        "" => format!("the compiler ended with {status}"),
        said => said.to_owned(),
    }
}

/// Up to `limit` bytes of a file, from its beginning.
fn contents(mut file: File, limit: u64) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A size as people read it: `18.2 MB`.
fn megabytes(bytes: usize) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn settings(script: &str) -> Settings {
        let argv = ["/bin/sh", "-c", script].map(OsString::from);
        Settings { compiler: Some(argv.into()), compile_time_ms: 600, ..Settings::default() }
    }

    fn run(settings: &Settings) -> Result<Vec<u8>, LoadError> {
        compile(&engine::build(&settings.tuning).unwrap(), settings, "x.wasm", b"component")
    }

    fn reason(script: &str) -> String {
        match run(&settings(script)) {
            Err(LoadError::Compile { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_child_gets_its_order_and_the_component() {
        let got = String::from_utf8(run(&settings("/bin/cat")).unwrap()).unwrap();
        let (order, component) = got.split_once('\n').unwrap();
        assert!(order.starts_with(r#"{"memory_bytes":2147483648,"time_s":1,"tuning":{"code":"#));
        let order: Order = serde_json::from_str(order).unwrap();
        assert_eq!((order.tuning, component), (Tuning::default(), "component"));
    }

    #[test]
    fn the_child_gets_no_environment_of_ours() {
        let got = run(&settings("/usr/bin/env")).unwrap();
        let text = String::from_utf8(got).unwrap();
        assert!(!text.contains("CARGO") && !text.contains("HOME="), "{text}");
    }

    #[test]
    fn failures_are_told_apart() {
        assert_eq!(reason("echo 'bad section' >&2; exit 1"), "bad section");
        assert!(reason("exit 7").contains("exit status: 7"));
        assert_eq!(reason("kill -ABRT $$"), "it takes more than 2147483648 bytes of memory");
        assert!(reason("kill -KILL $$").contains("processor time or memory"));
        let Err(LoadError::Compile { reason, .. }) = run(&Settings {
            compiler: Some(vec!["/nonexistent/compiler".into()]),
            ..Settings::default()
        }) else {
            panic!("it was started")
        };
        assert!(reason.contains("cannot be started"), "{reason}");
    }

    #[test]
    fn a_child_that_takes_too_long_is_ended_and_said_to_take_long() {
        let notices = Arc::new(Mutex::new(Vec::new()));
        let of_closure = Arc::clone(&notices);
        let mut settings = settings("exec /bin/sleep 60");
        settings.notice = Arc::new(move |text| of_closure.lock().unwrap().push(text.to_owned()));
        let error = run(&settings).unwrap_err();
        assert_eq!(error.to_string(), "x.wasm cannot be compiled: it takes longer than 600 ms");
        assert_eq!(*notices.lock().unwrap(), ["compiling x.wasm (0.1 MB), once…"]);
    }

    #[test]
    fn people_are_told_that_the_command_is_not_for_them() {
        let error = compile_child(&b"hello\n"[..], io::sink()).unwrap_err();
        assert!(error.contains("not for people"), "{error}");
    }
}

//! Makes components of core modules and compiles them, in a child process that cannot take the host
//! down with it.
//!
//! A component decides how much its compilation takes, so the child limits its own memory and
//! processor time, and the parent limits wall-clock time. What a module says of its types may send
//! whoever reads it round in circles until the stack is full. The child is this very program,
//! started with an argument of the command line's choice. It reads one line of JSON and the bytes
//! from its standard input, writes what it made to its standard output, and says what went wrong on
//! its standard error. All three are files, so nobody waits for anybody.

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

use super::adapt::{self, Adapter};
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

/// What the standard library says as a thread panics, and as its stack is full.
const PANICKED: &str = ") panicked at ";
const OVERFLOWED: &str = " has overflowed its stack";

/// The longest first line of the child's input.
const MAX_ORDER_BYTES: u64 = 4096;

/// What a child is told before the bytes.
#[derive(Serialize, Deserialize)]
struct Order {
    memory_bytes: u64,
    time_s: u64,
    task: Task,
}

/// What a child makes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Task {
    /// Compiled code of a component.
    Compile(Tuning),
    /// A component of a core module.
    Encode(Option<Adapter>),
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
    let made = match &settings.compiler {
        None => engine.precompile_component(component).map_err(|error| format!("{error:#}")),
        Some(program) => make(program, settings, name, Task::Compile(settings.tuning), component),
    };
    made.map_err(|reason| LoadError::Compile { name: name.to_owned(), reason })
}

/// The component that a core module says it is.
///
/// # Errors
/// If the module, or what it says of its types, is not valid.
pub(super) fn encode(
    settings: &Settings,
    name: &str,
    module: &[u8],
    adapter: Option<Adapter>,
) -> Result<Vec<u8>, LoadError> {
    let made = match &settings.compiler {
        None => adapt::encode(module, adapter),
        Some(program) => make(program, settings, name, Task::Encode(adapter), module),
    };
    made.map_err(|reason| LoadError::Invalid { name: name.to_owned(), reason })
}

/// What a child makes of `input`, or why it does not.
fn make(
    program: &[OsString],
    settings: &Settings,
    name: &str,
    task: Task,
    input: &[u8],
) -> Result<Vec<u8>, String> {
    let (mut child, made, said) = start(program, settings, task, input)
        .map_err(|error| format!("the compiler cannot be started: {error}"))?;
    let status = wait(&mut child, settings, name, input.len())
        .map_err(|error| format!("the compiler is lost: {error}"))?;
    let Some(status) = status else {
        return Err(format!("it takes longer than {} ms", settings.compile_time_ms));
    };
    if !status.success() {
        return Err(reason_of(status, said, settings));
    }
    contents(made, u64::MAX).map_err(|error| error.to_string())
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
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let made = match order.task {
        Task::Compile(tuning) => engine::build(&tuning)
            .and_then(|engine| engine.precompile_component(&bytes))
            .map_err(|error| format!("{error:#}"))?,
        Task::Encode(adapter) => adapt::encode(&bytes, adapter)?,
    };
    output.write_all(&made).and_then(|()| output.flush()).map_err(|error| error.to_string())
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
    task: Task,
    bytes: &[u8],
) -> io::Result<(Child, File, File)> {
    let (program, arguments) =
        program.split_first().ok_or_else(|| io::Error::other("it has no name"))?;
    let time_s = settings.compile_time_ms.div_ceil(1000);
    let memory_bytes = settings.compile_memory_bytes;
    let order = Order { memory_bytes, time_s, task };
    let mut input = tempfile::tempfile()?;
    serde_json::to_writer(&input, &order)?;
    input.write_all(b"\n")?;
    input.write_all(bytes)?;
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
    let said = contents(said, MAX_REASON_BYTES).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    if said.contains(PANICKED) || said.contains(OVERFLOWED) {
        return "it contradicts itself or nests too deep: what reads it has failed".to_owned();
    }
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
    match said.trim() {
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
        assert!(
            order
                .starts_with(r#"{"memory_bytes":2147483648,"time_s":1,"task":{"compile":{"code":"#)
        );
        let Order { task, .. } = serde_json::from_str(order).unwrap();
        let Task::Compile(tuning) = task else { panic!("{order}") };
        assert_eq!((tuning, component), (Tuning::default(), "component"));
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
        for said in ["panicked at x.rs:1:2:", "has overflowed its stack"] {
            let script = format!("echo \"thread 'main' (7) {said}\" >&2; kill -ABRT $$");
            assert!(reason(&script).starts_with("it contradicts itself"), "{said}");
        }
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

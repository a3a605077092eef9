//! Handlers as subprocesses, in command mode: the log on standard input, outputs on standard
//! output, bodies from the object endpoint; standard error is the host's own.
//!
//! A step ends with the handler's own process, not with a pipe that something it started holds
//! open. Nothing here commits anything, reads the host's environment or decides on retries. The
//! host must ignore `SIGPIPE`, as Rust programs do: a handler may close its input early.

mod child;
mod failure;
mod proxy;

use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};

use self::child::set_step;
pub(crate) use self::child::{Running, command};
pub use self::failure::{ProcessFailure, ProcessStepError};
pub use self::proxy::loopback_bypass;
use crate::Error;
use crate::endpoint::Endpoint;
use crate::handler::{Frame, LogLine, Output};
use crate::protocol::input;
use crate::protocol::output::{OutputLimits, Parser};

/// Lines are written to the handler in pieces of about so many bytes, the size of a Linux pipe.
const WRITE_BYTES: usize = 64 * 1024;

/// Output is read in pieces of at most so many bytes.
const READ_BYTES: usize = 64 * 1024;

/// How long a pipe that is still open after the handler's exit may be silent before it is left.
const DRAIN_PAUSE: Duration = Duration::from_millis(100);

/// How long such a pipe is read at most.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// A handler as a program to start.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// The program, looked up in `PATH` unless it has a slash, and its arguments.
    pub argv: Vec<OsString>,
    /// How long a step may take, in milliseconds.
    pub timeout_ms: u64,
    /// Set in the handler's environment in addition to the host's; see [`loopback_bypass`].
    pub environment: Vec<(OsString, OsString)>,
}

impl ProcessSpec {
    /// The program's name for messages.
    pub(crate) fn program(&self) -> String {
        self.argv.first().map_or_else(String::new, |program| program.to_string_lossy().into_owned())
    }
}

/// The W3C trace context that a handler continues: `TRACEPARENT`, and `TRACESTATE` if there is one.
pub type TraceContext = (String, Option<String>);

/// Runs the handler once: gives it `lines`, and returns what it wrote once it has exited with 0.
///
/// On every error the handler's whole process group is ended first: at a time-out with `SIGTERM`
/// and, two seconds later, `SIGKILL`; else with `SIGKILL` at once. Dropping the future does that,
/// too. After success, what the handler left running is let be. Where the handler fails after the
/// endpoint could not read the store, that failure is the error.
///
/// # Errors
/// [`ProcessStepError::Failure`] for what the handler did, [`ProcessStepError::Host`] for what kept
/// the host from running it.
pub async fn run_step<S>(
    spec: &ProcessSpec,
    frame: &Frame,
    step_key: &str,
    trace: Option<TraceContext>,
    lines: S,
    endpoint: &Endpoint,
    limits: &OutputLimits,
) -> Result<Vec<Output>, ProcessStepError>
where
    S: Stream<Item = Result<LogLine, Error>> + Send + Unpin,
{
    // What failed in an earlier step is no news.
    drop(endpoint.take_failure());
    let parser = Parser::new(*limits, frame.session);
    let mut command = command(spec, frame)?;
    set_step(&mut command, frame, step_key, trace);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = Running::start(command, spec)?;
    let limit = Duration::from_millis(spec.timeout_ms);
    let driven = drive(spec, &mut running, lines, endpoint, parser);
    let error = match tokio::time::timeout(limit, driven).await {
        Ok(Ok(outputs)) => {
            running.release();
            return Ok(outputs);
        }
        Ok(Err(error)) => {
            running.kill().await;
            error
        }
        Err(_) => {
            running.terminate().await;
            let (program, limit_ms) = (spec.program(), spec.timeout_ms);
            ProcessFailure::TimedOut { program, limit_ms }.into()
        }
    };
    let exited = matches!(
        error,
        ProcessStepError::Failure(ProcessFailure::Exited { .. } | ProcessFailure::Signalled { .. })
    );
    match endpoint.take_failure() {
        Some(failure) if exited => Err(failure.into()),
        _ => Err(error),
    }
}

/// Writes, reads and waits at the same time, until the handler has exited.
async fn drive<S>(
    spec: &ProcessSpec,
    running: &mut Running,
    lines: S,
    endpoint: &Endpoint,
    parser: Parser,
) -> Result<Vec<Output>, ProcessStepError>
where
    S: Stream<Item = Result<LogLine, Error>> + Send + Unpin,
{
    let (stdin, stdout) = running.pipes();
    let mut feeding = pin!(feed(stdin, lines, endpoint));
    let mut fed = false;
    let mut collector =
        Collector { stdout, parser, chunk: Vec::with_capacity(READ_BYTES), open: true };
    let refused = |source| ProcessFailure::Output { program: spec.program(), source };
    let status = loop {
        tokio::select! {
            read = collector.read(), if collector.open => {
                read?;
                collector.take().map_err(refused)?;
            }
            result = &mut feeding, if !fed => {
                result?;
                fed = true;
            }
            status = running.wait() => break status?,
        }
    };
    check(spec, status)?;
    let deadline = tokio::time::sleep(DRAIN_LIMIT);
    let mut deadline = pin!(deadline);
    while collector.open {
        tokio::select! {
            read = tokio::time::timeout(DRAIN_PAUSE, collector.read()) => match read {
                Ok(read) => read?,
                Err(_) => break,
            },
            () = &mut deadline => break,
        }
        collector.take().map_err(refused)?;
    }
    Ok(collector.parser.finish().map_err(refused)?)
}

/// The handler's output as far as it has arrived.
struct Collector {
    stdout: ChildStdout,
    parser: Parser,
    chunk: Vec<u8>,
    /// Whether more may come.
    open: bool,
}

impl Collector {
    /// Waits for more. May be dropped at any time without losing bytes.
    async fn read(&mut self) -> Result<(), Error> {
        match self.stdout.read_buf(&mut self.chunk).await {
            Ok(len) => {
                self.open = len > 0;
                Ok(())
            }
            Err(source) => Err(host("read the handler's output", source)),
        }
    }

    fn take(&mut self) -> Result<(), crate::protocol::output::OutputError> {
        self.parser.push(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }
}

/// Writes the log to the handler, for as long as it reads.
async fn feed<S>(mut stdin: ChildStdin, mut lines: S, endpoint: &Endpoint) -> Result<(), Error>
where
    S: Stream<Item = Result<LogLine, Error>> + Send + Unpin,
{
    let mut buffer = Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 4);
    while let Some(line) = lines.next().await {
        let line = line?;
        let url = endpoint.url(&line.entry.hash());
        input::append(&mut buffer, &line, &url, line.entry.data().map(|data| &data[..]));
        if buffer.len() >= WRITE_BYTES {
            if !write(&mut stdin, &buffer).await? {
                return Ok(());
            }
            buffer.clear();
        }
    }
    write(&mut stdin, &buffer).await.map(drop)
}

/// Whether the handler still reads.
async fn write(stdin: &mut ChildStdin, bytes: &[u8]) -> Result<bool, Error> {
    match stdin.write_all(bytes).await {
        Ok(()) => Ok(true),
        Err(source) if source.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(source) => Err(host("write the handler's input", source)),
    }
}

/// Whether a handler that exited so ended well.
pub(crate) fn check(spec: &ProcessSpec, status: ExitStatus) -> Result<(), ProcessFailure> {
    use std::os::unix::process::ExitStatusExt as _;

    if status.success() {
        return Ok(());
    }
    let program = spec.program();
    Err(match (status.code(), status.signal()) {
        (Some(code), _) => ProcessFailure::Exited { program, code },
        (None, signal) => ProcessFailure::Signalled { program, signal: signal.unwrap_or_default() },
    })
}

fn host(action: &str, source: io::Error) -> Error {
    Error::Io { action: action.to_owned(), source }
}

#[cfg(test)]
mod tests;

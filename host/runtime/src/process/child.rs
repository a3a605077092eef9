//! A handler's process, its environment, and the end of all that it started.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process_group, set_parent_process_death_signal,
};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{ProcessFailure, ProcessSpec, TraceContext, host};
use crate::Error;
use crate::handler::Frame;

/// Between `SIGTERM` and `SIGKILL` at a time-out.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);

/// How long a killed process is waited for; one that the kernel holds is left to tokio's reaper.
const REAP_LIMIT: Duration = Duration::from_secs(1);

/// A handler's process with its group. Dropping it kills the group, unless it was released.
pub(crate) struct Running {
    child: Child,
    /// `None` once the group was killed or released. The group outlives its leader while it has
    /// members, and its number is not given to another process before they are gone.
    group: Option<Pid>,
}

impl Running {
    /// Starts the handler as the leader of a process group of its own.
    pub(crate) fn start(command: Command, spec: &ProcessSpec) -> Result<Self, ProcessFailure> {
        let mut command = command;
        command.process_group(0).kill_on_drop(true);
        die_with_the_host(&mut command);
        let child = command
            .spawn()
            .map_err(|source| ProcessFailure::CannotStart { program: spec.program(), source })?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { child, group })
    }

    /// The handler's standard input and output. To be called once.
    pub(crate) fn pipes(&mut self) -> (ChildStdin, ChildStdout) {
        let stdin = self.child.stdin.take().expect("it was piped, and is taken here only");
        let stdout = self.child.stdout.take().expect("it was piped, and is taken here only");
        (stdin, stdout)
    }

    /// Waits for the handler itself to exit. May be dropped and called again.
    pub(crate) async fn wait(&mut self) -> Result<ExitStatus, Error> {
        self.child.wait().await.map_err(|source| host("wait for the handler", source))
    }

    /// How the handler exited, if it has.
    pub(crate) fn exited(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(|source| host("look after the handler", source))
    }

    /// Lets what the handler left running be.
    pub(crate) fn release(mut self) {
        self.group = None;
    }

    /// Asks the group to end; kills what is left of it when its leader has, or after a grace.
    pub(crate) async fn terminate(mut self) {
        self.signal(Signal::TERM);
        // How it ends makes no difference any more.
        let _ = tokio::time::timeout(TERMINATION_GRACE, self.child.wait()).await;
        self.kill().await;
    }

    /// Kills the group.
    pub(crate) async fn kill(mut self) {
        self.signal(Signal::KILL);
        self.group = None;
        let _ = tokio::time::timeout(REAP_LIMIT, self.child.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It fails where nothing is left to signal.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Has the kernel kill the handler when the host is killed in a way that it cannot answer: nothing
/// that the handler does then can be committed, and it would still cost what it costs.
///
/// The kernel goes by the thread that starts the process, not by the host's process: that thread
/// has to live as long as the step.
fn die_with_the_host(command: &mut Command) {
    let host = getpid();
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The host may have been killed before this took effect.
        if getppid() == Some(host) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between fork and exec, only what is async-signal-safe may run. Both calls are plain
    // system calls, and making an error of a kind allocates nothing.
    unsafe { command.pre_exec(before_exec) };
}

/// The handler's program with its arguments, in the host's environment and what the protocol adds to
/// it for all steps of a session.
pub(crate) fn command(spec: &ProcessSpec, frame: &Frame) -> Result<Command, ProcessFailure> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "no program is named");
        return Err(ProcessFailure::CannotStart { program: spec.program(), source });
    };
    let metadata =
        serde_json::to_string(&frame.metadata).expect("a map of strings has a JSON form");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .env("PUGMARK_SESSION_ID", frame.session.to_string())
        .env("PUGMARK_AGENT_ID", &frame.agent)
        .env("PUGMARK_SESSION_METADATA", metadata)
        // A host that is itself a handler has these of its own step, and its handlers have others.
        .env_remove("PUGMARK_SNAPSHOT")
        .env_remove("PUGMARK_STEP_KEY")
        .env_remove("PUGMARK_RPC_URL");
    Ok(command)
}

/// Adds what holds for one step.
pub(super) fn set_step(
    command: &mut Command,
    frame: &Frame,
    step_key: &str,
    trace: Option<TraceContext>,
) {
    command.env("PUGMARK_SNAPSHOT", frame.snapshot.to_string()).env("PUGMARK_STEP_KEY", step_key);
    if let Some((traceparent, tracestate)) = trace {
        command.env("TRACEPARENT", traceparent);
        match tracestate {
            Some(tracestate) => command.env("TRACESTATE", tracestate),
            None => command.env_remove("TRACESTATE"),
        };
    }
}

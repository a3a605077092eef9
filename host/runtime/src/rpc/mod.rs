//! Handlers in RPC mode: a subprocess that is kept between steps and serves HTTP.
//!
//! The host makes the listening socket and gives it to the process, so that there is no port to
//! agree on and nothing to wait for but the first answer. The process is started with the first
//! step, again after it ended or was ended, and ends with the run. Its standard output goes where
//! standard error goes.

mod socket;

use std::os::fd::AsFd as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::Stream;
use reqwest::Client;
use tokio::sync::Mutex;
use url::Url;

use crate::Error;
use crate::call::{CallFailure, Callee, Reach, StepHead, call, client, limit};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, InvokeError};
use crate::handler::{Frame, LogLine, Output};
use crate::process::{ProcessFailure, ProcessSpec, Running, check, command};

/// How long a process may take from its start to its first answer.
const READY_LIMIT: Duration = Duration::from_mins(1);

/// Between two tries to get that answer.
const READY_PAUSE: Duration = Duration::from_millis(50);

/// How long an answer is waited for after the process has exited, and its exit after a lost answer.
const SETTLE_LIMIT: Duration = Duration::from_secs(1);

/// A handler in RPC mode.
pub struct RpcHandler {
    spec: ProcessSpec,
    client: Client,
    server: Mutex<Option<Box<Server>>>,
}

/// A process that serves.
struct Server {
    running: Running,
    url: Url,
}

impl RpcHandler {
    /// A handler that is not started yet.
    ///
    /// # Errors
    /// If there can be no HTTP client.
    pub fn new(spec: ProcessSpec) -> Result<Self, Error> {
        Ok(Self {
            spec,
            client: client(Reach { loopback: true, tls: false })?,
            server: Mutex::default(),
        })
    }

    /// Ends the process with its group, if there is one: with `SIGTERM` and, two seconds later,
    /// `SIGKILL`.
    pub async fn shut_down(&self) {
        if let Some(server) = self.server.lock().await.take() {
            server.running.terminate().await;
        }
    }

    /// Runs one step. Dropping the future ends the process.
    pub(crate) async fn step<S>(
        &self,
        head: StepHead<'_>,
        lines: S,
        endpoint: &Endpoint,
    ) -> Result<Vec<Output>, InvokeError>
    where
        S: Stream<Item = Result<LogLine, Error>> + Send + Unpin,
    {
        let mut kept = self.server.lock().await;
        let alive = match kept.take() {
            Some(mut server) => server.running.exited()?.is_none().then_some(server),
            None => None,
        };
        let mut server = match alive {
            Some(server) => server,
            None => self.start(head.frame).await?,
        };
        let driven = self.drive(&mut server, head, lines, endpoint);
        match tokio::time::timeout(limit(self.spec.timeout_ms), driven).await {
            Ok(outputs) => {
                *kept = Some(server);
                outputs
            }
            Err(_) => {
                server.running.terminate().await;
                let (program, limit_ms) = (self.spec.program(), self.spec.timeout_ms);
                Err(ProcessFailure::TimedOut { program, limit_ms }.into())
            }
        }
    }

    /// Starts the process and waits until it serves.
    async fn start(&self, frame: &Frame) -> Result<Box<Server>, InvokeError> {
        let mut command = command(&self.spec, frame)?;
        let output = std::io::stderr().as_fd().try_clone_to_owned();
        command.stdin(Stdio::null()).stdout(output.map_err(|source| host("copy a file", source))?);
        let (listener, url) =
            socket::listen().map_err(|source| host("open a port on loopback", source))?;
        let reserved = socket::hand_over(&mut command, listener)
            .map_err(|source| host("pass on a socket", source))?;
        // The command goes with the start, and the host's own end of the socket with it: when the
        // process is gone, connections are refused.
        let running = Running::start(command, &self.spec)?;
        drop(reserved);
        let mut server = Box::new(Server { running, url });
        let ready_limit = READY_LIMIT.min(limit(self.spec.timeout_ms));
        let ready = tokio::time::timeout(ready_limit, self.wait_until_ready(&mut server)).await;
        match ready {
            Ok(ready) => ready?,
            Err(_) => {
                server.running.terminate().await;
                let limit_ms = u64::try_from(ready_limit.as_millis()).unwrap_or(u64::MAX);
                let handler = self.spec.program();
                return Err(CallFailure::NotReady { handler, limit_ms }.into());
            }
        }
        Ok(server)
    }

    /// Waits until `GET /` is answered with success.
    async fn wait_until_ready(&self, server: &mut Server) -> Result<(), InvokeError> {
        loop {
            tokio::select! {
                answer = self.client.get(server.url.clone()).send() => {
                    if answer.is_ok_and(|answer| answer.status().is_success()) {
                        return Ok(());
                    }
                }
                status = server.running.wait() => return Err(self.exited(status?)),
            }
            tokio::time::sleep(READY_PAUSE).await;
        }
    }

    /// One call, and an eye on the process.
    async fn drive<S>(
        &self,
        server: &mut Server,
        head: StepHead<'_>,
        lines: S,
        endpoint: &Endpoint,
    ) -> Result<Vec<Output>, InvokeError>
    where
        S: Stream<Item = Result<LogLine, Error>> + Send + Unpin,
    {
        let program = self.spec.program();
        let callee = Callee { name: &program, url: &server.url, client: &self.client };
        let mut calling = std::pin::pin!(call(&callee, head, lines, endpoint));
        let answered = tokio::select! {
            answered = &mut calling => answered,
            status = server.running.wait() => {
                let status = status?;
                // What it answered before it exited may still be on its way.
                return match tokio::time::timeout(SETTLE_LIMIT, calling).await {
                    Ok(Ok(outputs)) => Ok(outputs),
                    Ok(Err(error)) if !is_lost(&error) => Err(error),
                    _ => Err(self.exited(status)),
                };
            }
        };
        match answered {
            Err(error) if is_lost(&error) => {
                // The connection goes before the process does.
                match tokio::time::timeout(SETTLE_LIMIT, server.running.wait()).await {
                    Ok(status) => Err(self.exited(status?)),
                    Err(_) => Err(error),
                }
            }
            other => other,
        }
    }

    /// The failure of a process that exited when it should serve.
    fn exited(&self, status: ExitStatus) -> InvokeError {
        let program = self.spec.program();
        check(&self.spec, status)
            .err()
            .unwrap_or(ProcessFailure::Exited { program, code: 0 })
            .into()
    }
}

/// Whether there was no answer, which the end of the process explains.
fn is_lost(error: &InvokeError) -> bool {
    matches!(
        error,
        InvokeError::Failure(Failure::Call(
            CallFailure::Unreachable { .. } | CallFailure::Broken { .. }
        ))
    )
}

fn host(action: &str, source: std::io::Error) -> Error {
    Error::Io { action: action.to_owned(), source }
}

#[cfg(test)]
mod tests;

//! Giving a handler the log, whichever kind of handler it is.

use std::sync::Arc;

use futures::TryStreamExt as _;
use pugmark_log::{Digest, Snapshot};
use tokio::runtime::Handle;

use crate::call::StepHead;
use crate::effects::Answers;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::failure::InvokeError;
use crate::guest_io::{BlockingLines, BlockingObjects};
use crate::handler::{Frame, Output};
use crate::process;
use crate::sandbox::{Component, Outside, StepSetup, World};
use crate::served::Served;
use crate::step::{Context, Handler};
use crate::step_log::StepLog;
use crate::trace::Span;

/// What the handler answers to the log of `tip`. One in the sandbox is answered by `answers`.
pub(crate) async fn invoke(
    context: &Context,
    frame: &Frame,
    tip: &Snapshot,
    span: Option<&Span>,
    answers: &Answers<'_>,
) -> Result<Vec<Output>, InvokeError> {
    if let (Handler::Component { component, .. }, Some(keeper)) =
        (&context.handler, &context.keeper)
        && component.world() == World::Typed
    {
        return keeper.step(context, component, frame, tip, answers).await;
    }
    let (bucket, cache) = (context.bucket.clone(), context.cache.clone());
    let log = StepLog::new(bucket, tip, cache, context.lifecycle.clone());
    match &context.handler {
        Handler::Component { component, .. } => {
            let outside = (answers.outside)();
            in_the_sandbox(context, component, frame, tip.log.root(), log, outside).await
        }
        _ => outside_the_sandbox(context, frame, tip, span, log).await,
    }
}

async fn outside_the_sandbox(
    context: &Context,
    frame: &Frame,
    tip: &Snapshot,
    span: Option<&Span>,
    log: Arc<StepLog>,
) -> Result<Vec<Output>, InvokeError> {
    let mut secret = [0; 16];
    context.bucket.environment().fill_random(&mut secret);
    let endpoint = Endpoint::start(Served::new(Arc::clone(&log)), secret)
        .map_err(|source| Error::Io { action: "open a port on loopback".into(), source })?;
    let step_key = format!("{}:{}", tip.session, tip.last.version);
    let limits = context.limits.of_lines();
    let lines = log.lines().inspect_ok(|line| log.sent(line));
    let head = StepHead { frame, step_key: &step_key, span, limits: &limits };
    match &context.handler {
        Handler::Process(spec) => {
            let trace = span.map(|span| (span.traceparent(), span.state.clone()));
            let step = process::run_step(spec, frame, &step_key, trace, lines, &endpoint, &limits);
            Ok(step.await?)
        }
        Handler::Rpc(handler) => handler.step(head, lines, &endpoint).await,
        Handler::Remote(handler) => handler.step(head, lines, &endpoint).await,
        Handler::Component { .. } => {
            let reason = "a component was taken for a handler outside the sandbox".to_owned();
            Err(Error::Internal { reason }.into())
        }
    }
}

async fn in_the_sandbox(
    context: &Context,
    component: &Component,
    frame: &Frame,
    log_digest: Digest,
    log: Arc<StepLog>,
    outside: Option<Box<dyn Outside>>,
) -> Result<Vec<Output>, InvokeError> {
    let handle = Handle::current();
    let mut lines = BlockingLines::new(&log, handle.clone());
    let limit = context.limits.object_read_bytes;
    let setup = StepSetup {
        frame: frame.clone(),
        log_digest,
        objects: Arc::new(BlockingObjects::new(log, handle, limit)),
        limits: context.limits.clone(),
        diagnostics: Arc::clone(&context.diagnostics),
        outside,
    };
    let component = component.clone();
    let stepped = tokio::task::spawn_blocking(move || component.step(setup, &mut lines)).await;
    match stepped {
        Ok(stepped) => Ok(stepped?),
        Err(join) => Err(Error::Internal { reason: join.to_string() }.into()),
    }
}

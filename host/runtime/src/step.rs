//! One step: a handler reads the log and answers, and its answer is committed, all or nothing.

use std::sync::Arc;

use pugmark_log::{
    Bucket, Draft, Manifest, NodeCache, Outgoing, PAUSE_CONTENT_TYPE, Snapshot, Step, StepEnd,
};

use crate::effects::{Answers, Attempt, Http};
use crate::error::Error;
use crate::failure::{Failure, InvokeError, StepError};
use crate::fetch::Fetcher;
use crate::handler::{Frame, Output};
use crate::invoke::invoke;
use crate::kept::Keeper;
use crate::lifecycle::Lifecycle;
use crate::process::ProcessSpec;
use crate::protocol::duration;
use crate::record::record;
use crate::remote::RemoteHandler;
use crate::rpc::RpcHandler;
use crate::sandbox::{Component, Diagnostics, Limits};
use crate::trace::{Span, Trace};

/// What decides the next event.
pub enum Handler {
    /// A subprocess, started anew for every step.
    Process(ProcessSpec),
    /// A component in the sandbox.
    Component {
        /// The component.
        component: Component,
        /// Arguments after its name.
        args: Vec<String>,
    },
    /// A subprocess that is kept between steps and called over HTTP.
    Rpc(RpcHandler),
    /// A handler at an address, called over HTTP.
    Remote(RemoteHandler),
}

impl Handler {
    /// The kind's name, as step records have it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Process(_) => "process",
            Self::Component { .. } => "component",
            Self::Rpc(_) => "rpc",
            Self::Remote(_) => "http",
        }
    }

    /// Ends what was kept between steps.
    pub async fn shut_down(&self) {
        if let Self::Rpc(handler) = self {
            handler.shut_down().await;
        }
    }
}

/// What a step runs with.
pub struct Context {
    /// Where the session lives.
    pub bucket: Bucket,
    /// The session's manifest.
    pub manifest: Manifest,
    /// The handler's name.
    pub agent: String,
    /// The handler.
    pub handler: Handler,
    /// Bounds of a sandboxed step.
    pub limits: Limits,
    /// Takes a sandboxed handler's diagnostics.
    pub diagnostics: Diagnostics,
    /// The trace that steps belong to. Handlers in the sandbox are not told of it.
    pub trace: Option<Trace>,
    /// Fetches bodies that a handler names by `uri`; where this is `None`, none are.
    pub fetcher: Option<Fetcher>,
    /// What a handler in the sandbox may ask by HTTP; where this is `None`, nothing.
    pub http: Option<Arc<Http>>,
    /// Where the session comes from, if the handler is to be told of it.
    pub lifecycle: Option<Lifecycle>,
    /// Keeps parts of the log for the next step.
    pub cache: Option<Arc<NodeCache>>,
    /// Keeps a typed handler's instance for the next step. Where this is `None`, every step has an
    /// instance of its own.
    pub keeper: Option<Keeper>,
}

/// A checkpoint that a step made.
pub struct Committed {
    /// The checkpoint.
    pub snapshot: Snapshot,
    /// How many outputs the handler gave.
    pub outputs: usize,
}

/// Runs one step on `tip` and commits it. `span` is the step's own, for the handler to continue.
///
/// What the step sends to other sessions is in the checkpoint then, and not delivered yet.
///
/// # Errors
/// [`StepError`]; nothing is committed then, unless the error's kind is `Unknown`.
pub async fn step(
    context: &Context,
    tip: Snapshot,
    span: Option<&Span>,
) -> Result<Committed, StepError> {
    let attempt = Attempt::begin(context, tip).await?;
    let stepped = attempted(context, &attempt, span).await;
    if let Err(StepError::Failed { source, .. }) = &stepped {
        attempt.failed(source).await;
    }
    stepped
}

/// Runs an attempt at a step, and commits it.
async fn attempted(
    context: &Context,
    attempt: &Attempt,
    span: Option<&Span>,
) -> Result<Committed, StepError> {
    let tip = &attempt.basis;
    let frame = Frame {
        session: tip.session,
        agent: context.agent.clone(),
        metadata: context.manifest.metadata.clone(),
        snapshot: tip.version,
        clock: tip.created,
        args: match &context.handler {
            Handler::Component { args, .. } => args.clone(),
            Handler::Process(_) | Handler::Rpc(_) | Handler::Remote(_) => Vec::new(),
        },
    };
    let outputs = outputs(context, &frame, attempt, span).await;
    let outputs = outputs.map_err(|error| error.of_step(&context.agent))?;
    let record = record(context, &frame, tip, attempt.effects())?;
    let count = outputs.len();
    let end = end_of(&outputs);
    let (mut own, mut outbox) = (Vec::new(), Vec::new());
    for Output { body, attributes, target, .. } in outputs {
        let draft = Draft::push(body, attributes);
        match target {
            None => own.push(draft),
            Some(target) => outbox.push(Outgoing { draft, target }),
        }
    }
    let step = Step { basis: tip.clone(), outputs: own, outbox, end, record: Some(record) };
    let committed = context.bucket.commit_step_on(&step, attempt.known()).await;
    let snapshot = committed.map_err(|error| match error {
        pugmark_log::Error::EntryTooLong { len, limit } => {
            failed(context, Failure::Entry { len, limit })
        }
        pugmark_log::Error::OutboxTarget { session, reason } => {
            failed(context, Failure::Target { session, reason })
        }
        error => error.into(),
    })?;
    if let Some(keeper) = &context.keeper {
        keeper.committed(&snapshot);
    }
    Ok(Committed { snapshot, outputs: count })
}

/// What the handler answers, with all bodies.
async fn outputs(
    context: &Context,
    frame: &Frame,
    attempt: &Attempt,
    span: Option<&Span>,
) -> Result<Vec<Output>, InvokeError> {
    let outside = || attempt.outside(context);
    let answers = Answers { outside: &outside, is_resumed: attempt.is_resumed() };
    let mut outputs = invoke(context, frame, &attempt.basis, span, &answers).await?;
    match &context.fetcher {
        Some(fetcher) => fetcher.fill(&context.bucket, &mut outputs).await?,
        None if outputs.iter().any(|output| output.uri.is_some()) => {
            return Err(InvokeError::Failure(Failure::NothingFetched));
        }
        None => {}
    }
    Ok(outputs)
}

fn failed(context: &Context, source: Failure) -> StepError {
    StepError::Failed { agent: context.agent.clone(), source }
}

/// How a step ends: with its last pause, if it has one.
pub(crate) fn end_of(outputs: &[Output]) -> StepEnd {
    let is_pause = |o: &&Output| o.attributes.content_type.as_deref() == Some(PAUSE_CONTENT_TYPE);
    let Some(pause) = outputs.iter().rev().find(is_pause) else { return StepEnd::Continue };
    // Whoever made the output has checked the duration; one that cannot be read is a pause.
    let duration = pause.attributes.metadata.get("duration").map(|text| duration::parse(text));
    match duration {
        Some(Ok(duration)) => {
            StepEnd::Sleep(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
        }
        _ => StepEnd::Pause,
    }
}

/// Stores a component's bytes in the bucket, if they are not there: before the first checkpoint
/// that names it.
///
/// # Errors
/// Whatever kept the bucket from taking it.
pub async fn keep_component(bucket: &Bucket, component: &Component) -> Result<(), Error> {
    if bucket.keep_object(&component.digest()).await? {
        return Ok(());
    }
    let source = component.clone();
    let bytes = tokio::task::spawn_blocking(move || source.bytes())
        .await
        .map_err(|join| Error::Internal { reason: join.to_string() })?
        .map_err(|source| Error::Internal { reason: source.to_string() })?;
    let stored = bucket.put_object(bytes).await?;
    if stored == component.digest() {
        Ok(())
    } else {
        let reason = format!("the component's file changed while it ran: it is {stored} now");
        Err(Error::Internal { reason })
    }
}

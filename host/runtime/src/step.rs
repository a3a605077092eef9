//! One step: a handler reads the log and answers, and its answer is committed, all or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt as _;
use pugmark_log::{
    Bucket, Digest, Draft, Manifest, NodeCache, PAUSE_CONTENT_TYPE, Snapshot, Step, StepEnd,
    Timestamp,
};
use serde::Serialize;
use tokio::runtime::Handle;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::guest_io::{BlockingLines, BlockingObjects};
use crate::handler::{Frame, Output};
use crate::process::{self, ProcessFailure, ProcessSpec, ProcessStepError};
use crate::protocol::duration;
use crate::protocol::output::{OutputError, OutputErrorKind, OutputLimits};
use crate::sandbox::{self, Component, Diagnostics, Limits, StepSetup};
use crate::served::Served;
use crate::step_log::StepLog;

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
    /// Bounds of a sandboxed step; of a subprocess's outputs, too.
    pub limits: Limits,
    /// Takes a sandboxed handler's diagnostics.
    pub diagnostics: Diagnostics,
    /// Trace context of the caller, passed to a subprocess: `traceparent` and `tracestate`.
    pub trace: Option<(String, Option<String>)>,
    /// Keeps parts of the log for the next step.
    pub cache: Option<Arc<NodeCache>>,
}

/// How a handler failed. Nothing was committed.
#[derive(thiserror::Error, Debug)]
pub enum Failure {
    /// A subprocess failed.
    #[error(transparent)]
    Process(#[from] ProcessFailure),
    /// A sandboxed handler failed.
    #[error(transparent)]
    Component(#[from] sandbox::Failure),
    /// An output, with all that describes it, is longer than an entry may be.
    #[error("one of its outputs makes an entry of {len} bytes, over the limit of {limit}")]
    Entry {
        /// The entry's length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl Failure {
    /// Whether it met a limit of time or size.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::Process(
                ProcessFailure::TimedOut { .. }
                    | ProcessFailure::Output {
                        source: OutputError {
                            kind: OutputErrorKind::LineTooLong { .. }
                                | OutputErrorKind::TotalTooLong { .. }
                                | OutputErrorKind::TooMany { .. },
                            ..
                        },
                        ..
                    }
            ) | Self::Component(sandbox::Failure::Exceeded(_))
                | Self::Entry { .. }
        )
    }

    /// Whether it could not even be started.
    #[must_use]
    pub fn is_unusable(&self) -> bool {
        matches!(self, Self::Process(ProcessFailure::CannotStart { .. }))
    }

    /// The way out, where there is one to tell.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Process(failure) => failure.hint(),
            Self::Component(_) => None,
            Self::Entry { .. } => Some("shorten its name or metadata; the body does not count"),
        }
    }
}

/// Why a step was not committed.
#[derive(thiserror::Error, Debug)]
pub enum StepError {
    /// The handler failed.
    #[error("handler `{agent}` failed")]
    Failed {
        /// The handler's name.
        agent: String,
        /// How it failed.
        source: Failure,
    },
    /// The host failed, or another step was committed first.
    #[error(transparent)]
    Host(#[from] Error),
}

impl From<pugmark_log::Error> for StepError {
    fn from(error: pugmark_log::Error) -> Self {
        Self::Host(error.into())
    }
}

/// A checkpoint that a step made.
pub struct Committed {
    /// The checkpoint.
    pub snapshot: Snapshot,
    /// How many outputs the handler gave.
    pub outputs: usize,
}

/// What a checkpoint records of the step that made it: all that the handler could see. The field
/// order is the persisted order; `docs/storage-layout.md` specifies it.
#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    handler: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<Digest>,
    /// How many entries the handler saw, and the digest of that log.
    n: u64,
    log: Digest,
    clock: Timestamp,
    /// The version that the step began on.
    snapshot: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a [String]>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abi: Option<u32>,
    /// The version that the handler's instance was created at.
    #[serde(skip_serializing_if = "Option::is_none")]
    born: Option<u64>,
    host: &'static str,
}

/// Runs one step on `tip` and commits it.
///
/// # Errors
/// [`StepError`]; nothing is committed then, unless the error's kind is `Unknown`.
pub async fn step(context: &Context, tip: Snapshot) -> Result<Committed, StepError> {
    let frame = Frame {
        session: tip.session,
        agent: context.agent.clone(),
        metadata: context.manifest.metadata.clone(),
        snapshot: tip.version,
        clock: tip.created,
        args: match &context.handler {
            Handler::Process(_) => Vec::new(),
            Handler::Component { args, .. } => args.clone(),
        },
    };
    let log = StepLog::new(context.bucket.clone(), &tip, context.cache.clone());
    let log_digest = tip.log.root();
    let outputs = match &context.handler {
        Handler::Process(spec) => run_process(context, spec, &frame, &tip, log).await?,
        Handler::Component { component, .. } => {
            run_component(context, component, &frame, log_digest, log).await?
        }
    };
    let record = record(context, &frame, &tip, log_digest)?;
    let step = Step {
        basis: tip,
        end: end_of(&outputs),
        outputs: outputs.into_iter().map(|o| Draft::push(o.body, o.attributes)).collect(),
        record: Some(record),
    };
    let snapshot = context.bucket.commit_step(&step).await.map_err(|error| match error {
        pugmark_log::Error::EntryTooLong { len, limit } => {
            failed(context, Failure::Entry { len, limit })
        }
        error => error.into(),
    })?;
    Ok(Committed { snapshot, outputs: step.outputs.len() })
}

async fn run_process(
    context: &Context,
    spec: &ProcessSpec,
    frame: &Frame,
    tip: &Snapshot,
    log: Arc<StepLog>,
) -> Result<Vec<Output>, StepError> {
    let mut secret = [0; 16];
    context.bucket.environment().fill_random(&mut secret);
    let endpoint = Endpoint::start(Served::new(Arc::clone(&log)), secret)
        .map_err(|source| Error::Io { action: "open a port on loopback".into(), source })?;
    let step_key = format!("{}:{}", tip.session, tip.last.version);
    let limits = OutputLimits::default();
    let trace = context.trace.clone();
    let lines = log.lines().inspect_ok(|line| log.sent(line));
    let outputs = process::run_step(spec, frame, &step_key, trace, lines, &endpoint, &limits).await;
    outputs.map_err(|error| match error {
        ProcessStepError::Failure(failure) => failed(context, failure.into()),
        ProcessStepError::Host(error) => error.into(),
    })
}

async fn run_component(
    context: &Context,
    component: &Component,
    frame: &Frame,
    log_digest: Digest,
    log: Arc<StepLog>,
) -> Result<Vec<Output>, StepError> {
    let handle = Handle::current();
    let mut lines = BlockingLines::new(&log, handle.clone());
    let limit = context.limits.object_read_bytes;
    let setup = StepSetup {
        frame: frame.clone(),
        log_digest,
        objects: Arc::new(BlockingObjects::new(log, handle, limit)),
        limits: context.limits.clone(),
        diagnostics: Arc::clone(&context.diagnostics),
    };
    let component = component.clone();
    let stepped = tokio::task::spawn_blocking(move || component.step(setup, &mut lines)).await;
    match stepped {
        Ok(Ok(outputs)) => Ok(outputs),
        Ok(Err(sandbox::StepError::Failure(failure))) => Err(failed(context, failure.into())),
        Ok(Err(sandbox::StepError::Host(error))) => Err(error.into()),
        Err(join) => Err(Error::Internal { reason: join.to_string() }.into()),
    }
}

fn failed(context: &Context, source: Failure) -> StepError {
    StepError::Failed { agent: context.agent.clone(), source }
}

/// How a step ends: with its last pause, if it has one.
fn end_of(outputs: &[Output]) -> StepEnd {
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

fn record(
    context: &Context,
    frame: &Frame,
    tip: &Snapshot,
    log: Digest,
) -> Result<Box<serde_json::value::RawValue>, StepError> {
    let component = match &context.handler {
        Handler::Process(_) => None,
        Handler::Component { component, .. } => Some(component.digest()),
    };
    let record = Record {
        kind: if component.is_some() { "component" } else { "process" },
        handler: &frame.agent,
        component,
        n: tip.log.count(),
        log,
        clock: frame.clock,
        snapshot: frame.snapshot,
        args: component.map(|_| frame.args.as_slice()),
        metadata: &frame.metadata,
        abi: component.map(|_| sandbox::ABI),
        born: component.map(|_| frame.snapshot),
        host: env!("CARGO_PKG_VERSION"),
    };
    serde_json::value::to_raw_value(&record)
        .map_err(|source| pugmark_log::Error::Encode { source }.into())
}

/// Stores a component's bytes in the bucket, if they are not there: before the first checkpoint
/// that names it.
///
/// # Errors
/// Whatever kept the bucket from taking it.
pub async fn keep_component(bucket: &Bucket, component: &Component) -> Result<(), Error> {
    if bucket.has_object(&component.digest()).await? {
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

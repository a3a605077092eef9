//! A step that is under way, as far as it gets something from outside.
//!
//! Its first answer makes it an attempt that is written down: with what handler, on what version. If
//! it is interrupted, the next run of the same handler goes on where it ended, on the same version;
//! what was pushed since counts as having arrived meanwhile. Any other handler starts over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pugmark_log::{Bucket, Digest, Snapshot, layout};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::runtime::Handle;

use super::record::Effect;
use super::recorder::Recorder;
use crate::error::Error;
use crate::sandbox::{self, Exceeded, Failure, Level, Outside};
use crate::step::{Context, Handler};

/// What a trace holds; the field order is the persisted order, and `docs/storage-layout.md`
/// specifies it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Trace {
    handler: String,
    component: Digest,
    abi: u32,
    /// The version that the attempt began on: it fixes the log and the clock.
    snapshot: u64,
    args: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lifecycle: bool,
    effects: Vec<Effect>,
}

/// A step that is under way.
pub(crate) struct Attempt {
    /// The snapshot that the step sees.
    pub(crate) basis: Snapshot,
    /// What it recorded; `None` where nothing is recorded, as nothing may be asked.
    recording: Option<Recording>,
    bucket: Bucket,
}

#[derive(Clone)]
pub(super) struct Recording {
    state: Arc<Mutex<State>>,
    /// How many answers an interrupted attempt had recorded.
    resumed: usize,
}

struct State {
    trace: Trace,
    /// The newest snapshot that is known.
    known: Snapshot,
}

impl Attempt {
    /// Begins a step on `tip`, or takes up the one whose trace `tip` has.
    ///
    /// # Errors
    /// If the version that an interrupted attempt began on cannot be read.
    pub(crate) async fn begin(context: &Context, tip: Snapshot) -> Result<Self, Error> {
        let bucket = context.bucket.clone();
        let found = tip.trace.as_ref().map(|trace| serde_json::from_str::<Trace>(trace.get()));
        let fresh = Trace::new(context, tip.version);
        let taken_up = match (&fresh, found) {
            (Some(fresh), Some(Ok(found))) if fresh.is_of_same_attempt_as(&found) => Some(found),
            (_, Some(_)) => {
                let text = "what an interrupted step had recorded is dropped: it was of another \
                            handler, or of other arguments";
                (context.diagnostics)(Level::Warn, text);
                None
            }
            (_, None) => None,
        };
        let (basis, trace, resumed) = match (taken_up, fresh) {
            (Some(found), _) => {
                let basis = begun_on(&bucket, &tip, found.snapshot).await?;
                let resumed = found.effects.len();
                let text = format!(
                    "going on with an interrupted step: {resumed} of its answers are recorded"
                );
                (context.diagnostics)(Level::Info, &text);
                (basis, Some(found), resumed)
            }
            (None, fresh) => (tip.clone(), fresh.filter(|_| context.http.is_some()), 0),
        };
        let recording = trace.map(|trace| Recording {
            state: Arc::new(Mutex::new(State { trace, known: tip })),
            resumed,
        });
        Ok(Self { basis, recording, bucket })
    }

    /// Whether it goes on where another one ended.
    pub(crate) fn is_resumed(&self) -> bool {
        self.recording.as_ref().is_some_and(|recording| recording.resumed > 0)
    }

    /// Who answers the step's requests.
    pub(crate) fn outside(&self, context: &Context) -> Option<Box<dyn Outside>> {
        let recording = self.recording.clone()?;
        Some(Box::new(Recorder::new(context, recording, Handle::current())))
    }

    /// What the step's checkpoint records; `None` if all requests were denied.
    pub(crate) fn effects(&self) -> Option<Vec<Effect>> {
        Some(self.recording.as_ref()?.state().trace.effects.clone())
    }

    /// The newest snapshot that is known.
    pub(crate) fn known(&self) -> Snapshot {
        let known = self.recording.as_ref().map(|recording| recording.state().known.clone());
        known.unwrap_or_else(|| self.basis.clone())
    }

    /// Drops what was recorded, if it can only lead to the same failure again. What kept it from
    /// being dropped is no news: the next run fails alike, and drops it.
    pub(crate) async fn failed(self, failure: &crate::Failure) {
        let may_pass = match failure {
            crate::Failure::Component(Failure::Exceeded(exceeded)) => {
                !matches!(exceeded, Exceeded::Stack)
            }
            _ => false,
        };
        let known = self.known();
        let recorded = self.effects().is_some_and(|effects| !effects.is_empty());
        if recorded && !may_pass {
            let _ = self.bucket.set_trace(known, None).await;
        }
    }
}

/// The version that an interrupted attempt began on.
async fn begun_on(bucket: &Bucket, tip: &Snapshot, version: u64) -> Result<Snapshot, Error> {
    let basis = if version == tip.version {
        tip.clone()
    } else {
        bucket.snapshot_named(&tip.session, version).await?
    };
    if version > tip.version || basis.last.version != tip.last.version {
        let key = layout::snapshot(&tip.session, tip.version).to_string();
        let reason = "its trace is of an earlier step".to_owned();
        return Err(pugmark_log::Error::Corrupt { key, reason }.into());
    }
    Ok(basis)
}

impl Trace {
    /// That of an attempt which has got nothing yet; `None` for handlers outside the sandbox, whose
    /// doings are not recorded.
    fn new(context: &Context, snapshot: u64) -> Option<Self> {
        let Handler::Component { component, args } = &context.handler else { return None };
        Some(Self {
            handler: context.agent.clone(),
            component: component.digest(),
            abi: sandbox::ABI,
            snapshot,
            args: args.clone(),
            lifecycle: context.lifecycle.is_some(),
            effects: Vec::new(),
        })
    }

    /// Whether the two differ in nothing but where they began and what they got.
    fn is_of_same_attempt_as(&self, other: &Self) -> bool {
        let Self { snapshot, effects, .. } = self.clone();
        self == &Self { snapshot, effects, ..other.clone() }
    }
}

impl Recording {
    /// No panic can leave it half changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer with this number.
    pub(super) fn recorded(&self, number: usize) -> Option<Effect> {
        self.state().trace.effects.get(number).cloned()
    }

    /// How many answers there are.
    pub(super) fn count(&self) -> usize {
        self.state().trace.effects.len()
    }

    /// Makes an answer durable.
    pub(super) async fn append(&self, bucket: &Bucket, effect: Effect) -> Result<(), Error> {
        let (known, trace) = {
            let mut state = self.state();
            state.trace.effects.push(effect);
            (state.known.clone(), state.trace.to_json()?)
        };
        let known = bucket.set_trace(known, Some(trace)).await?;
        self.state().known = known;
        Ok(())
    }
}

impl Trace {
    fn to_json(&self) -> Result<Box<RawValue>, Error> {
        to_raw_value(self).map_err(|source| pugmark_log::Error::Encode { source }.into())
    }
}

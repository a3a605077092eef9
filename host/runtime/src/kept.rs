//! The instance of a typed handler that a loop keeps from one step of a session to the next, so
//! that a step folds only what is new.
//!
//! What the handler then decides depends on the folds and decides of that instance, so these have
//! to follow from what is recorded. An instance is kept only while all that it decided was
//! committed, one step right after the other: then the version that it was created at, which each
//! step records, tells its whole past.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pugmark_log::{Digest, SessionId, Snapshot};
use tokio::runtime::Handle;

use crate::effects::Answers;
use crate::error::Error;
use crate::failure::InvokeError;
use crate::guest_io::{BlockingLines, BlockingObjects};
use crate::handler::{Frame, Output};
use crate::lines::Cursor;
use crate::sandbox::{Component, Failure, Instance, Moment, Outside, StepError, StepSetup};
use crate::step::Context;
use crate::step_log::StepLog;

/// Keeps an instance between the steps of a loop.
#[derive(Default)]
pub struct Keeper {
    held: Mutex<Option<Held>>,
}

/// An instance that has decided.
struct Held {
    kept: Box<Kept>,
    /// The checkpoint of what it decided last; `None` until that is committed.
    checkpoint: Option<Checkpoint>,
}

struct Checkpoint {
    version: u64,
    digest: Digest,
}

/// An instance, and the log as far as it was folded.
struct Kept {
    component: Digest,
    session: SessionId,
    /// The version that it was created at.
    born: u64,
    /// How many entries it has folded, and the digest of that log.
    seen: u64,
    log_digest: Digest,
    instance: Instance,
    log: Arc<StepLog>,
    objects: Arc<BlockingObjects>,
    cursor: Cursor,
}

impl Keeper {
    /// What a typed handler answers to the log of `tip`: on the instance that made the step before,
    /// if that is this one's past, else on a new one.
    pub(crate) async fn step(
        &self,
        context: &Context,
        component: &Component,
        frame: &Frame,
        tip: &Snapshot,
        answers: &Answers<'_>,
    ) -> Result<Vec<Output>, InvokeError> {
        let moment =
            Moment { snapshot: frame.snapshot, clock: frame.clock, log_digest: tip.log.root() };
        let held = self.take(context, component, tip).await?.filter(|_| !answers.is_resumed);
        let outside = (answers.outside)();
        let stepped = match held {
            Some(kept) => match go_on(kept, tip, moment, outside).await? {
                // What piles up in an instance is no reason to fail where a fresh one would not.
                Err(StepError::Failure(Failure::Exceeded(limit))) if limit.is_on_instance() => {
                    let outside = (answers.outside)();
                    begin(context, component, frame, tip, moment, outside).await?
                }
                stepped => stepped,
            },
            None => begin(context, component, frame, tip, moment, outside).await?,
        };
        let (kept, outputs) = stepped?;
        *self.lock() = Some(Held { kept, checkpoint: None });
        Ok(outputs)
    }

    /// The version at which the instance was created that has decided last.
    pub(crate) fn born(&self) -> Option<u64> {
        self.lock().as_ref().map(|held| held.kept.born)
    }

    /// Says that what was decided last has become this checkpoint.
    pub(crate) fn committed(&self, snapshot: &Snapshot) {
        if let Some(held) = self.lock().as_mut() {
            let (version, digest) = (snapshot.version, snapshot.digest());
            held.checkpoint = Some(Checkpoint { version, digest });
        }
    }

    /// Takes out the instance, if it can go on with the log of `tip`.
    async fn take(
        &self,
        context: &Context,
        component: &Component,
        tip: &Snapshot,
    ) -> Result<Option<Box<Kept>>, Error> {
        let held = self.lock().take();
        let Some(Held { kept, checkpoint: Some(checkpoint) }) = held else { return Ok(None) };
        let goes_on = kept.session == tip.session
            && kept.component == component.digest()
            // No other step came between.
            && checkpoint.version == tip.last.version
            && tip.trace.is_none()
            && !kept.cursor.is_stale();
        if !goes_on {
            return Ok(None);
        }
        if checkpoint.digest == tip.digest() {
            return Ok(Some(kept));
        }
        let prefix = context.bucket.prefix(&tip.log, kept.seen).await?;
        Ok(Some(kept).filter(|kept| prefix.root() == kept.log_digest))
    }

    /// A lock that is never held while anything else is done.
    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How an instance ended a step.
type Stepped = Result<(Box<Kept>, Vec<Output>), StepError>;

/// Has a new instance make a step.
async fn begin(
    context: &Context,
    component: &Component,
    frame: &Frame,
    tip: &Snapshot,
    moment: Moment,
    outside: Option<Box<dyn Outside>>,
) -> Result<Stepped, Error> {
    let handle = Handle::current();
    let (bucket, cache) = (context.bucket.clone(), context.cache.clone());
    let log = StepLog::new(bucket, tip, cache, context.lifecycle.clone());
    let limit = context.limits.object_read_bytes;
    let objects = Arc::new(BlockingObjects::new(Arc::clone(&log), handle.clone(), limit));
    let setup = StepSetup {
        frame: frame.clone(),
        log_digest: moment.log_digest,
        objects: Arc::clone(&objects) as _,
        limits: context.limits.clone(),
        diagnostics: Arc::clone(&context.diagnostics),
        outside: None,
    };
    let (component, session, seen) = (component.clone(), tip.session, tip.log.count());
    on_a_thread(move || {
        let Some(instance) = component.instance(setup)? else {
            let reason = "a program was taken for a typed handler".to_owned();
            return Err(Error::Internal { reason }.into());
        };
        let kept = Box::new(Kept {
            component: component.digest(),
            session,
            born: moment.snapshot,
            seen,
            log_digest: moment.log_digest,
            instance,
            cursor: log.beginning(),
            log,
            objects,
        });
        kept.step(seen, moment, outside, handle)
    })
    .await
}

/// Has an instance that was kept make another step.
async fn go_on(
    kept: Box<Kept>,
    tip: &Snapshot,
    moment: Moment,
    outside: Option<Box<dyn Outside>>,
) -> Result<Stepped, Error> {
    kept.log.grow(tip);
    let (seen, handle) = (tip.log.count(), Handle::current());
    on_a_thread(move || kept.step(seen, moment, outside, handle)).await
}

async fn on_a_thread(step: impl FnOnce() -> Stepped + Send + 'static) -> Result<Stepped, Error> {
    let stepped = tokio::task::spawn_blocking(step).await;
    stepped.map_err(|join| Error::Internal { reason: join.to_string() })
}

impl Kept {
    /// Folds what is new of a log of `seen` entries, and decides. Blocks.
    fn step(
        self,
        seen: u64,
        moment: Moment,
        outside: Option<Box<dyn Outside>>,
        handle: Handle,
    ) -> Stepped {
        let Self { component, session, born, mut instance, log, objects, cursor, .. } = self;
        let mut lines = BlockingLines::from(&log, cursor, handle);
        instance.set_outside(outside);
        let (instance, outputs) = instance.step(&moment, &mut lines)?;
        objects.forget();
        let (cursor, log_digest) = (lines.into_cursor(), moment.log_digest);
        let kept =
            Self { component, session, born, seen, log_digest, instance, log, objects, cursor };
        Ok((Box::new(kept), outputs))
    }
}

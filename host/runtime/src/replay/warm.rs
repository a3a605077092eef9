//! Steps of a typed handler on an instance that is kept, which folds each entry once.
//!
//! That is speculative: a handler's `decide` may change what a later one answers, and recorded steps
//! may have had instances of their own. So an answer counts if it is the recorded one; any other is
//! checked by running the step as it was run.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::Shared;
use super::answer::{Answer, Replayed, message_of};
use super::cold::{different, impure, once, recorded};
use super::feed::Feed;
use super::group::{Born, Group, Planned, Steps, Turn};
use super::tally::Verdict;
use crate::error::Error;
use crate::guest_io::BlockingObjects;
use crate::handler::Output;
use crate::sandbox::{Component, Failure, Instance, StepError, StepSetup};
use crate::step::Context;

/// The worker of a group.
pub(super) struct Warm {
    shared: Arc<Shared>,
    group: Arc<Group>,
    component: Component,
    context: Arc<Context>,
    handle: Handle,
    kept: Option<Box<Kept>>,
    /// How many answers were not the recorded ones.
    differences: u64,
    /// Whether kept instances have been found to answer something else than fresh ones.
    is_impure: bool,
    /// How all further steps end: what they fold ends the handler.
    ended: Option<String>,
}

/// An instance, and the log as far as it was folded.
struct Kept {
    feed: Feed,
    instance: Instance,
}

/// What an instance came to.
enum Attempt {
    Answered { kept: Box<Kept>, outputs: Vec<Output> },
    Failed { failure: Failure, while_folding: bool },
    Host(Error),
}

impl Warm {
    pub(super) fn new(
        shared: Arc<Shared>,
        group: Arc<Group>,
        component: Component,
        context: Arc<Context>,
    ) -> Self {
        let handle = Handle::current();
        let (kept, differences, is_impure, ended) = (None, 0, false, None);
        Self { shared, group, component, context, handle, kept, differences, is_impure, ended }
    }

    /// Replays steps as they come. Blocks.
    pub(super) fn run(mut self, mut steps: Steps) -> Result<(), Error> {
        while let Some(batch) = steps.blocking_recv() {
            for step in batch {
                if self.shared.tally.is_past(step.sequence) {
                    continue;
                }
                let verdict = self.verdict(&step)?;
                self.shared.tally.add(step.sequence, step.point, verdict);
            }
        }
        Ok(())
    }

    fn verdict(&mut self, step: &Planned) -> Result<Verdict, Error> {
        if self.is_impure {
            let recorded = self.recorded(step)?;
            return Ok(match self.exact(step)? {
                Replayed::Answer(exact) if exact == recorded => impure(&self.group),
                Replayed::Answer(exact) => different(&self.group, step, recorded, exact),
                Replayed::Incomplete(reason) => Verdict::Incomplete(reason),
            });
        }
        if let Some(message) = &self.ended {
            let replayed = Answer::Failed { message: message.clone() };
            return Ok(different(&self.group, step, self.recorded(step)?, replayed));
        }
        let kept = self.kept.take();
        match attempt(&self.shared, &self.group, &self.component, kept, &step.turn)? {
            Attempt::Answered { mut kept, outputs } => {
                let own = kept.feed.peek(step.last.added)?;
                let recorded = Answer::recorded(own, &step.last);
                self.kept = Some(kept).filter(|kept| !kept.feed.is_stale());
                match Answer::replayed(outputs, step)? {
                    Replayed::Answer(replayed) if replayed == recorded => Ok(Verdict::Identical),
                    Replayed::Answer(replayed) => self.settle(step, recorded, Some(replayed)),
                    Replayed::Incomplete(reason) => Ok(Verdict::Incomplete(reason)),
                }
            }
            Attempt::Failed { failure: Failure::Exceeded(_), .. } | Attempt::Host(_) => {
                let recorded = self.recorded(step)?;
                self.settle(step, recorded, None)
            }
            Attempt::Failed { failure, while_folding } => {
                let (recorded, message) = (self.recorded(step)?, message_of(&failure));
                let verdict =
                    self.settle(step, recorded, Some(Answer::Failed { message: message.clone() }))?;
                if while_folding && !self.is_impure && matches!(verdict, Verdict::Different(_)) {
                    self.ended = Some(message);
                }
                Ok(verdict)
            }
        }
    }

    /// The verdict on a step whose kept instance answered `warm`, which is not what is recorded, or
    /// met a limit of this host's.
    ///
    /// Where nothing but the answers differ, running all of those steps again would take time that
    /// grows with the square of their number: after the first, fewer and fewer are.
    fn settle(
        &mut self,
        step: &Planned,
        recorded: Answer,
        warm: Option<Answer>,
    ) -> Result<Verdict, Error> {
        self.differences += 1;
        if let Some(warm) = warm.as_ref().filter(|_| !self.differences.is_power_of_two()) {
            return Ok(different(&self.group, step, recorded, warm.clone()));
        }
        let exact = match self.exact(step)? {
            Replayed::Answer(exact) => exact,
            Replayed::Incomplete(reason) => return Ok(Verdict::Incomplete(reason)),
        };
        if warm.is_some_and(|warm| warm != exact) {
            self.is_impure = true;
            self.kept = None;
            if exact == recorded {
                return Ok(impure(&self.group));
            }
        }
        if exact == recorded {
            return Ok(Verdict::Identical);
        }
        Ok(different(&self.group, step, recorded, exact))
    }

    fn recorded(&self, step: &Planned) -> Result<Answer, Error> {
        self.handle.block_on(recorded(&self.shared, step))
    }

    /// Runs a step as it was run: on its own, or on an instance that has made the very steps that
    /// the recorded one had made.
    fn exact(&self, step: &Planned) -> Result<Replayed, Error> {
        match step.born {
            Born::Here | Born::Unknown => {
                self.handle.block_on(once(&self.group, &self.context, step))
            }
            Born::Earlier { first, this } => {
                repeat_turns(&self.shared, &self.group, &self.component, step, first..=this)
            }
        }
    }
}

/// Runs the steps with these numbers on one instance, and compares the last.
pub(super) async fn repeat(
    shared: &Arc<Shared>,
    group: &Arc<Group>,
    component: &Component,
    step: &Planned,
    turns: RangeInclusive<usize>,
) -> Result<Replayed, Error> {
    let (shared, group, component) = (Arc::clone(shared), Arc::clone(group), component.clone());
    let step = step.clone();
    let repeated = tokio::task::spawn_blocking(move || {
        repeat_turns(&shared, &group, &component, &step, turns)
    });
    repeated.await.map_err(|join| Error::Internal { reason: join.to_string() })?
}

fn repeat_turns(
    shared: &Shared,
    group: &Group,
    component: &Component,
    step: &Planned,
    turns: RangeInclusive<usize>,
) -> Result<Replayed, Error> {
    let mut kept = None;
    let mut last = Vec::new();
    for turn in group.turns(turns) {
        match attempt(shared, group, component, kept.take(), &turn)? {
            Attempt::Answered { kept: next, outputs } => (kept, last) = (Some(next), outputs),
            Attempt::Failed { failure: failure @ Failure::Exceeded(_), .. } => {
                return Ok(Replayed::Incomplete(message_of(&failure)));
            }
            Attempt::Failed { failure, .. } => return Ok(Replayed::failed(&failure)),
            Attempt::Host(error) => return Replayed::host(error),
        }
    }
    Answer::replayed(last, step)
}

/// Has an instance, a new one if none was kept, take the turn. Blocks.
fn attempt(
    shared: &Shared,
    group: &Group,
    component: &Component,
    kept: Option<Box<Kept>>,
    turn: &Turn,
) -> Result<Attempt, Error> {
    let (mut feed, instance) = match kept {
        Some(kept) => {
            let Kept { feed, instance } = *kept;
            (feed, Ok(Some(instance)))
        }
        None => {
            let handle = Handle::current();
            let feed = Feed::new(shared, group.lifecycle.as_ref(), &handle);
            let limits = shared.options.limits.clone();
            let log = Arc::clone(feed.log());
            let setup = StepSetup {
                frame: group.frame(&turn.moment),
                log_digest: turn.moment.log_digest,
                objects: Arc::new(BlockingObjects::new(log, handle, limits.object_read_bytes)),
                limits,
                diagnostics: Arc::new(|_, _| {}),
            };
            (feed, component.instance(setup))
        }
    };
    let stepped = match instance {
        Ok(Some(instance)) => instance.step(&turn.moment, &mut feed.before(turn.n)),
        Ok(None) => {
            let reason = "a program was taken for a typed handler".to_owned();
            return Err(Error::Internal { reason });
        }
        Err(error) => Err(error),
    };
    Ok(match stepped {
        Ok((instance, outputs)) => {
            Attempt::Answered { kept: Box::new(Kept { feed, instance }), outputs }
        }
        Err(StepError::Failure(failure)) => {
            Attempt::Failed { failure, while_folding: feed.position() < turn.n }
        }
        Err(StepError::Host(error)) => Attempt::Host(error),
    })
}

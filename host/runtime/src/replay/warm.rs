//! Steps of a typed handler on an instance that is kept, which folds each entry once.
//!
//! Where that instance has made the very steps that the recorded one had made, its answer is final.
//! Where it has made others as well, the answer is a guess: a handler's `decide` may change what a
//! later one answers. It counts if it is the recorded one; any other is checked by running the step
//! as it was run.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::Shared;
use super::answer::{Answer, Replayed, message_of};
use super::cold::{different, impure, recorded};
use super::feed::Feed;
use super::group::{Group, Planned, Steps, Turn};
use super::tally::Verdict;
use crate::effects::Replayer;
use crate::error::Error;
use crate::guest_io::BlockingObjects;
use crate::handler::Output;
use crate::sandbox::{Component, Failure, Instance, StepError, StepSetup};

/// The worker of a group.
pub(super) struct Warm {
    shared: Arc<Shared>,
    group: Arc<Group>,
    component: Component,
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
    /// The first and the last turn that it has made, if these are all between the two and no others.
    made: Option<(usize, usize)>,
}

/// A step that was run as it was run.
struct Exact {
    kept: Option<Box<Kept>>,
    replayed: Replayed,
    /// Whether it failed at an entry that it folded.
    while_folding: bool,
}

/// What an instance came to.
enum Attempt {
    Answered { kept: Box<Kept>, outputs: Vec<Output> },
    Failed { failure: Failure, while_folding: bool },
    Host(Error),
}

impl Warm {
    pub(super) fn new(shared: Arc<Shared>, group: Arc<Group>, component: Component) -> Self {
        let handle = Handle::current();
        let (kept, differences, is_impure, ended) = (None, 0, false, None);
        Self { shared, group, component, handle, kept, differences, is_impure, ended }
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
        if let Some(message) = &self.ended {
            let replayed = Answer::Failed { message: message.clone() };
            return Ok(different(&self.group, step, self.recorded(step)?, replayed));
        }
        match self.kept.take() {
            Some(kept) if !self.is_impure && !kept.precedes(step) => self.guess(step, kept),
            kept => {
                self.kept = kept;
                self.repeat(step)
            }
        }
    }

    /// The verdict on a step that is run as it was run.
    fn repeat(&mut self, step: &Planned) -> Result<Verdict, Error> {
        let kept = self.kept.take();
        let exact = exact(&self.shared, &self.group, &self.component, step, kept)?;
        let recorded = match exact.kept {
            Some(kept) => self.keep(kept, step)?,
            None => self.recorded(step)?,
        };
        Ok(match exact.replayed {
            Replayed::Answer(answer) if answer == recorded => self.same(step),
            Replayed::Answer(answer) => {
                if let (Answer::Failed { message }, true) = (&answer, exact.while_folding) {
                    self.ended = Some(message.clone()).filter(|_| !self.is_impure);
                }
                different(&self.group, step, recorded, answer)
            }
            Replayed::Incomplete(reason) => Verdict::Incomplete(reason),
        })
    }

    /// The verdict on a step that has an instance make which has made others.
    fn guess(&mut self, step: &Planned, kept: Box<Kept>) -> Result<Verdict, Error> {
        let kept = Some(kept);
        match attempt(&self.shared, &self.group, &self.component, kept, &step.turn)? {
            Attempt::Answered { kept, outputs } => {
                let recorded = self.keep(kept, step)?;
                match Answer::replayed(outputs, step)? {
                    Replayed::Answer(guessed) if guessed == recorded => Ok(Verdict::Identical),
                    Replayed::Answer(guessed) => self.settle(step, recorded, Some(guessed), false),
                    Replayed::Incomplete(reason) => Ok(Verdict::Incomplete(reason)),
                }
            }
            Attempt::Failed { failure: Failure::Exceeded(_), .. } | Attempt::Host(_) => {
                let recorded = self.recorded(step)?;
                self.settle(step, recorded, None, false)
            }
            Attempt::Failed { failure, while_folding } => {
                let guessed = Answer::Failed { message: message_of(&failure) };
                let recorded = self.recorded(step)?;
                self.settle(step, recorded, Some(guessed), while_folding)
            }
        }
    }

    /// Keeps an instance that has made the step; returns the recorded answer, which stands in the
    /// log behind what the instance has folded.
    fn keep(&mut self, mut kept: Box<Kept>, step: &Planned) -> Result<Answer, Error> {
        let own = kept.feed.peek(step.last.added)?;
        self.kept = Some(kept).filter(|kept| !kept.feed.is_stale());
        Ok(Answer::recorded(own, &step.last))
    }

    /// The verdict on a step for which a guess is not what is recorded, or met a limit of this
    /// host's.
    ///
    /// Where nothing but the answers differ, running all of those steps again would take time that
    /// grows with the square of their number: after the first, fewer and fewer are.
    fn settle(
        &mut self,
        step: &Planned,
        recorded: Answer,
        guessed: Option<Answer>,
        while_folding: bool,
    ) -> Result<Verdict, Error> {
        self.differences += 1;
        let settled = match guessed {
            Some(guessed) if !self.differences.is_power_of_two() => guessed,
            guessed => {
                let exact = exact(&self.shared, &self.group, &self.component, step, None)?;
                let answer = match exact.replayed {
                    Replayed::Answer(answer) => answer,
                    Replayed::Incomplete(reason) => return Ok(Verdict::Incomplete(reason)),
                };
                self.is_impure = guessed.is_some_and(|guessed| guessed != answer);
                if self.is_impure || self.kept.is_none() {
                    self.kept = exact.kept.filter(|kept| !kept.feed.is_stale());
                }
                answer
            }
        };
        if settled == recorded {
            return Ok(self.same(step));
        }
        if let (Answer::Failed { message }, true) = (&settled, while_folding && !self.is_impure) {
            self.ended = Some(message.clone());
        }
        Ok(different(&self.group, step, recorded, settled))
    }

    /// The verdict on a step that gave what is recorded when it was run as it was run.
    fn same(&self, step: &Planned) -> Verdict {
        if self.is_impure && step.first == step.this {
            impure(&self.group)
        } else {
            Verdict::Identical
        }
    }

    fn recorded(&self, step: &Planned) -> Result<Answer, Error> {
        self.handle.block_on(recorded(&self.shared, step))
    }
}

impl Kept {
    /// Whether it is where the instance was that then made the step.
    fn precedes(&self, step: &Planned) -> bool {
        self.made.is_some_and(|(first, last)| first == step.first && last + 1 == step.this)
    }
}

/// Runs a step as it was run, on an instance of its own, and compares.
pub(super) async fn repeat(
    shared: &Arc<Shared>,
    group: &Arc<Group>,
    component: &Component,
    step: &Planned,
) -> Result<Replayed, Error> {
    let (shared, group, component) = (Arc::clone(shared), Arc::clone(group), component.clone());
    let step = step.clone();
    let repeated =
        tokio::task::spawn_blocking(move || exact(&shared, &group, &component, &step, None));
    Ok(repeated.await.map_err(|join| Error::Internal { reason: join.to_string() })??.replayed)
}

/// Runs a step as it was run: on an instance that makes the very steps which the recorded one had
/// made; on `kept`, if that has made those before. Blocks.
fn exact(
    shared: &Shared,
    group: &Group,
    component: &Component,
    step: &Planned,
    kept: Option<Box<Kept>>,
) -> Result<Exact, Error> {
    let mut kept = kept.filter(|kept| kept.precedes(step));
    let first = if kept.is_some() { step.this } else { step.first };
    let mut last = Vec::new();
    for turn in group.turns(first..=step.this) {
        let ended = |replayed, while_folding| Ok(Exact { kept: None, replayed, while_folding });
        match attempt(shared, group, component, kept.take(), &turn)? {
            Attempt::Answered { kept: next, outputs } => (kept, last) = (Some(next), outputs),
            Attempt::Failed { failure: failure @ Failure::Exceeded(_), .. } => {
                return ended(Replayed::Incomplete(message_of(&failure)), false);
            }
            Attempt::Failed { failure, while_folding } => {
                return ended(Replayed::failed(&failure), while_folding);
            }
            Attempt::Host(error) => return ended(Replayed::host(error)?, false),
        }
    }
    if let Some(kept) = &mut kept {
        kept.made = Some((step.first, step.this));
    }
    let replayed = Answer::replayed(last, step)?;
    Ok(Exact { kept, replayed, while_folding: false })
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
            let Kept { feed, instance, .. } = *kept;
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
                outside: None,
            };
            (feed, component.instance(setup))
        }
    };
    let stepped = match instance {
        Ok(Some(mut instance)) => {
            let handle = Handle::current();
            instance.set_outside(Replayer::of(&turn.effects, &shared.bucket, &handle));
            instance.step(&turn.moment, &mut feed.before(turn.n))
        }
        Ok(None) => {
            let reason = "a program was taken for a typed handler".to_owned();
            return Err(Error::Internal { reason });
        }
        Err(error) => Err(error),
    };
    Ok(match stepped {
        Ok((instance, outputs)) => {
            Attempt::Answered { kept: Box::new(Kept { feed, instance, made: None }), outputs }
        }
        Err(StepError::Failure(failure)) => {
            Attempt::Failed { failure, while_folding: feed.position() < turn.n }
        }
        Err(StepError::Host(error)) => Attempt::Host(error),
    })
}

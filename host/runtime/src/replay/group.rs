//! Groups of steps: those that one instance of a handler could have made, and the worker of each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pugmark_log::{Digest, LastStep, Manifest, Timestamp};
use tokio::sync::mpsc::UnboundedReceiver;

use super::report::Point;
use super::tally::Verdict;
use super::{Shared, cold, warm};
use crate::effects::Recorded as Effects;
use crate::error::Error;
use crate::handler::Frame;
use crate::lifecycle::Lifecycle;
use crate::sandbox::{Component, Moment, World};
use crate::step::{Context, Handler};

/// What the steps of a group have in common.
pub(super) struct Group {
    pub manifest: Manifest,
    pub handler: String,
    /// `None` for a process.
    pub component: Option<Digest>,
    pub args: Vec<String>,
    pub metadata: BTreeMap<String, String>,
    pub lifecycle: Option<Lifecycle>,
    /// The steps that were found so far.
    turns: Mutex<Turns>,
}

/// Steps, oldest first, each with the number of the first one that its instance made.
#[derive(Default)]
struct Turns(Vec<(Turn, usize)>);

/// What tells a step from the others of its group, as far as the handler sees it.
#[derive(Clone)]
pub(super) struct Turn {
    /// How many entries the step saw.
    pub n: u64,
    pub moment: Moment,
    /// What it got from outside.
    pub effects: Effects,
}

/// A step to be replayed.
#[derive(Clone)]
pub(super) struct Planned {
    /// Its number in the order of the log.
    pub sequence: u64,
    /// Its checkpoint, and when that was made.
    pub point: Point,
    pub created: Timestamp,
    /// What it added and sent, and how it ended.
    pub last: LastStep,
    pub turn: Turn,
    /// The number of its turn in its group, and of the first turn of the instance that made it.
    pub this: usize,
    pub first: usize,
}

/// Steps as they come to a worker, several at a time: waking it for each would take longer than many
/// a step.
pub(super) type Steps = UnboundedReceiver<Vec<Planned>>;

impl Turns {
    /// An instance is kept from one step to the very next, so its turns follow one another; a record
    /// that says otherwise is taken for one of a fresh instance.
    fn take(&mut self, turn: Turn, born: Option<u64>) -> (usize, usize) {
        let this = self.0.len();
        let before = self.0.last().map(|(_, first)| *first);
        let first = before.filter(|first| {
            born != Some(turn.moment.snapshot) && born == Some(self.0[*first].0.moment.snapshot)
        });
        let first = first.unwrap_or(this);
        self.0.push((turn, first));
        (this, first)
    }
}

impl Group {
    pub(super) fn new(
        manifest: Manifest,
        handler: String,
        component: Option<Digest>,
        args: Vec<String>,
        metadata: BTreeMap<String, String>,
        lifecycle: Option<Lifecycle>,
    ) -> Self {
        let turns = Mutex::default();
        Self { manifest, handler, component, args, metadata, lifecycle, turns }
    }

    /// Takes in the next step of the group, whose instance was created at version `born`. Returns the
    /// number of its turn and that of the instance's first.
    pub(super) fn take(&self, turn: Turn, born: Option<u64>) -> (usize, usize) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).take(turn, born)
    }

    /// The turns of these numbers.
    pub(super) fn turns(&self, numbers: std::ops::RangeInclusive<usize>) -> Vec<Turn> {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = turns.0.get(numbers).unwrap_or_default();
        turns.iter().map(|(turn, _)| turn.clone()).collect()
    }

    /// All that a step shows to its handler, but for the log.
    pub(super) fn frame(&self, moment: &Moment) -> Frame {
        Frame {
            session: self.manifest.session,
            agent: self.handler.clone(),
            metadata: self.metadata.clone(),
            snapshot: moment.snapshot,
            clock: moment.clock,
            args: self.args.clone(),
        }
    }

    /// What steps of the group run with.
    fn context(&self, shared: &Shared, handler: Handler) -> Context {
        Context {
            bucket: shared.bucket.clone(),
            manifest: self.manifest.clone(),
            agent: self.handler.clone(),
            handler,
            limits: shared.options.limits.clone(),
            diagnostics: Arc::new(|_, _| {}),
            trace: None,
            fetcher: None,
            http: None,
            lifecycle: self.lifecycle.clone(),
            cache: Some(Arc::clone(&shared.cache)),
            keeper: None,
        }
    }
}

/// Replays the steps of a group as they come.
pub(super) async fn work(
    shared: Arc<Shared>,
    group: Arc<Group>,
    mut steps: Steps,
) -> Result<(), Error> {
    let component = match component(&shared, &group).await? {
        Ok(component) => component,
        Err(reason) => {
            while let Some(batch) = steps.recv().await {
                for step in batch {
                    let verdict = Verdict::Incomplete(reason.clone());
                    shared.tally.add(step.sequence, step.point, verdict);
                }
            }
            return Ok(());
        }
    };
    let handler = match &component {
        Some(component) => {
            Handler::Component { component: component.clone(), args: group.args.clone() }
        }
        None => match shared.options.processes.get(&group.handler) {
            Some(spec) => Handler::Process(spec.clone()),
            None => return Err(Error::Internal { reason: "a process without command".into() }),
        },
    };
    let context = Arc::new(group.context(&shared, handler));
    match component {
        Some(component) if component.world() == World::Typed && !shared.options.cold => {
            let permit = Arc::clone(&shared.jobs).acquire_owned().await;
            let warm = warm::Warm::new(shared, group, component);
            let ended = tokio::task::spawn_blocking(move || warm.run(steps)).await;
            drop(permit);
            ended.map_err(|join| Error::Internal { reason: join.to_string() })?
        }
        component => cold::run(shared, group, component, context, steps).await,
    }
}

/// The component to run, `None` for a process; or why there is none.
async fn component(
    shared: &Shared,
    group: &Group,
) -> Result<Result<Option<Component>, String>, Error> {
    let Some(digest) = group.component else { return Ok(Ok(None)) };
    match &shared.options.with {
        Some(other) => Ok(Ok(Some(other.drawing_as(digest)))),
        None => Ok(shared.components.get(digest).await?.map(Some)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_one_instance_follow_one_another() {
        let mut turns = Turns::default();
        let mut take = |snapshot, born| {
            let (clock, log_digest) = (Timestamp::from_millis(0), Digest::of(b""));
            turns.take(
                Turn { n: 0, moment: Moment { snapshot, clock, log_digest }, effects: None },
                born,
            )
        };
        assert_eq!(take(3, Some(3)), (0, 0));
        assert_eq!(take(4, Some(3)), (1, 0));
        assert_eq!(take(6, Some(3)), (2, 0));
        assert_eq!(take(7, Some(7)), (3, 3));
        assert_eq!(take(8, Some(7)), (4, 3));
        // No instance was created there, or it was not kept until then.
        assert_eq!(take(9, Some(8)), (5, 5));
        assert_eq!(take(10, Some(3)), (6, 6));
        assert_eq!(take(11, None), (7, 7));
        assert_eq!(take(12, Some(11)), (8, 7));
    }
}

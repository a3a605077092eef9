//! Finds the recorded steps of a history, in order, and hands each to the worker of its group.
//!
//! On the way it checks what workers then rely on: that the log which each step recorded is the
//! beginning of the log that is replayed, and that the log goes on with the outputs of its version.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use pugmark_log::{Digest, Entry, GrowingLog, Recorded};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinSet;

use super::Shared;
use super::group::{self, Group, Planned, Turn};
use super::lineage::{Branch, Lineage};
use super::report::Point;
use super::step_record::{COMPONENT, PROCESS, StepRecord, damaged};
use super::tally::Verdict;
use super::versions::versions;
use crate::error::Error;
use crate::lifecycle::Lifecycle;
use crate::sandbox::{ABI, Moment};

/// The kinds of steps that are known and never run again.
const ELSEWHERE: [&str; 2] = ["rpc", "http"];

/// How many steps a worker is handed at a time.
const BATCH: usize = 16;

/// A session's groups, by what the steps of a group have in common.
type Groups = HashMap<Key, Queue>;

/// The way to a group's worker.
struct Queue {
    group: Arc<Group>,
    worker: UnboundedSender<Vec<Planned>>,
    /// Steps that were not handed over yet; they are when this is dropped.
    steps: Vec<Planned>,
}

impl Queue {
    fn push(&mut self, step: Planned) {
        self.steps.push(step);
        if self.steps.len() >= BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        // A worker that is gone has failed, and its error is reported at the end.
        let _ = self.worker.send(std::mem::take(&mut self.steps));
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.hand_over();
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    handler: String,
    component: Option<Digest>,
    args: Vec<String>,
    metadata: BTreeMap<String, String>,
    lifecycle: bool,
}

impl Key {
    fn of(record: StepRecord) -> Self {
        let StepRecord { handler, component, args, metadata, lifecycle, .. } = record;
        Self { handler, component, args, metadata, lifecycle }
    }
}

/// Plans all steps of `lineage`; `workers` takes those who replay them.
pub(super) async fn plan(
    shared: &Arc<Shared>,
    lineage: &Lineage,
    workers: &mut JoinSet<Result<(), Error>>,
) -> Result<(), Error> {
    let mut check = Check::new(shared);
    let mut sequence = 0;
    for branch in &lineage.branches {
        let mut groups = Groups::new();
        let mut versions = versions(shared, branch.manifest.session, branch.first..=branch.last);
        while let Some(recorded) = versions.try_next().await? {
            let Some(mut record) = StepRecord::of(&recorded)? else { continue };
            check.step(&recorded, &record).await?;
            if shared.options.handler.as_ref().is_some_and(|only| *only != record.handler) {
                continue;
            }
            if shared.tally.is_past(sequence) {
                return Ok(());
            }
            shared.tally.found();
            let point = Point { session: recorded.session, version: recorded.version };
            if let Some(verdict) = verdict(shared, &record, &recorded)? {
                shared.tally.add(sequence, point, verdict);
            } else {
                let (turn, born) = (turn(&mut record), record.born);
                // Where the replay begins later than the session does.
                let before = born.map_or(0..0, |born| born.saturating_add(1)..branch.first);
                let key = Key::of(record);
                let queue = queue_of(shared, branch, key, before, &mut groups, workers).await?;
                let (this, first) = queue.group.take(turn.clone(), born);
                let (created, last) = (recorded.created, recorded.last);
                queue.push(Planned { sequence, point, created, last, turn, this, first });
            }
            sequence += 1;
        }
    }
    Ok(())
}

/// The verdict on a step that cannot, or is not to be, replayed; `None` for all others.
fn verdict(
    shared: &Shared,
    record: &StepRecord,
    recorded: &Recorded,
) -> Result<Option<Verdict>, Error> {
    let (kind, handler) = (record.kind.as_str(), &record.handler);
    Ok(match kind {
        COMPONENT => {
            if record.component.is_none() {
                return Err(damaged(recorded, "its step names no component"));
            }
            match record.abi {
                Some(ABI) => None,
                abi => {
                    let abi = abi.map_or("none".to_owned(), |abi| abi.to_string());
                    Some(Verdict::Incomplete(format!(
                        "the sandbox that it ran in, of abi {abi}, is not served by this version"
                    )))
                }
            }
        }
        PROCESS if shared.options.processes.contains_key(handler) => None,
        PROCESS => Some(Verdict::Skipped(format!("`{handler}` is a process"))),
        kind if ELSEWHERE.contains(&kind) => {
            Some(Verdict::Skipped(format!("`{handler}` is a handler of the kind {kind}")))
        }
        kind => {
            let reason = format!("`{handler}` is of a kind that is not known: {kind}");
            Some(Verdict::Incomplete(reason))
        }
    })
}

/// What a step shows to its handler, but for what its group has in common.
fn turn(record: &mut StepRecord) -> Turn {
    let effects = record.take_effects();
    let StepRecord { n, log, clock, snapshot, .. } = *record;
    Turn { n, moment: Moment { snapshot, clock, log_digest: log }, effects }
}

/// The way to the worker of a step's group; starts that worker if the step is the group's first.
async fn queue_of<'a>(
    shared: &Arc<Shared>,
    branch: &Branch,
    key: Key,
    before: Range<u64>,
    groups: &'a mut Groups,
    workers: &mut JoinSet<Result<(), Error>>,
) -> Result<&'a mut Queue, Error> {
    Ok(match groups.entry(key) {
        Slot::Occupied(slot) => slot.into_mut(),
        Slot::Vacant(slot) => {
            let group = Arc::new(group(shared, branch, slot.key()).await?);
            take_before(shared, &group, slot.key(), before).await?;
            let (worker, steps) = mpsc::unbounded_channel();
            workers.spawn(group::work(Arc::clone(shared), Arc::clone(&group), steps));
            slot.insert(Queue { group, worker, steps: Vec::new() })
        }
    })
}

async fn group(shared: &Shared, branch: &Branch, key: &Key) -> Result<Group, Error> {
    let lifecycle = if key.lifecycle {
        Some(Lifecycle::of(&shared.bucket, &branch.manifest).await?)
    } else {
        None
    };
    let (manifest, handler) = (branch.manifest.clone(), key.handler.clone());
    let (args, metadata) = (key.args.clone(), key.metadata.clone());
    Ok(Group::new(manifest, handler, key.component, args, metadata, lifecycle))
}

/// Takes in steps of a group that are not replayed, as they are before those that are: the instance
/// that made the first of these may have made them as well.
async fn take_before(
    shared: &Arc<Shared>,
    group: &Group,
    key: &Key,
    before: Range<u64>,
) -> Result<(), Error> {
    if before.is_empty() {
        return Ok(());
    }
    let range = before.start..=before.end - 1;
    let mut versions = versions(shared, group.manifest.session, range);
    while let Some(recorded) = versions.try_next().await? {
        let Some(mut record) = StepRecord::of(&recorded)? else { continue };
        let (turn, born) = (turn(&mut record), record.born);
        if Key::of(record) == *key {
            group.take(turn, born);
        }
    }
    Ok(())
}

/// The log, as far as the steps so far have seen it.
struct Check {
    entries: BoxStream<'static, Result<Entry, pugmark_log::Error>>,
    seen: GrowingLog,
    /// What was read and not seen yet.
    ahead: VecDeque<Entry>,
}

impl Check {
    fn new(shared: &Shared) -> Self {
        let log = &shared.upto.log;
        let cache = Some(Arc::clone(&shared.cache));
        let entries = shared.bucket.entries(log, 0..log.count(), cache);
        Self { entries, seen: GrowingLog::default(), ahead: VecDeque::new() }
    }

    /// Fails unless a step's record and version fit the log.
    async fn step(&mut self, recorded: &Recorded, record: &StepRecord) -> Result<(), Error> {
        while self.seen.count() < record.n {
            let next = match self.ahead.pop_front() {
                Some(entry) => Some(entry),
                None => self.entries.try_next().await?,
            };
            self.seen
                .push(next.ok_or_else(|| damaged(recorded, "its step saw more than there is"))?);
        }
        if self.seen.count() != record.n || self.seen.root() != record.log {
            let reason = "what its step saw is not what the log begins with";
            return Err(damaged(recorded, reason));
        }
        for (index, line) in recorded.objects.iter().enumerate() {
            if self.ahead.len() == index {
                self.ahead.extend(self.entries.try_next().await?);
            }
            if self.ahead.get(index).is_none_or(|entry| entry.line() != line) {
                let reason = "the log does not go on with what it made durable";
                return Err(damaged(recorded, reason));
            }
        }
        Ok(())
    }
}

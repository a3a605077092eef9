//! Appending to a session: pushes, steps and wakes.
//!
//! All of them make the next version with put-if-absent and start again from the new tip when
//! another writer was first. A push goes onto whatever the tip is. A step is committed on top of
//! what arrived meanwhile, behind its own outputs; it loses to another step only.

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use futures::future::try_join_all;
use serde_json::value::RawValue;

use crate::arrival::Arrival;
use crate::bucket::Bucket;
use crate::entry::{Attributes, Draft, Entry, Event};
use crate::error::Error;
use crate::last_step::{Ended, LastStep, OutboxItem};
use crate::layout;
use crate::outbox::{Addressed, Outgoing};
use crate::put::Put;
use crate::session_id::SessionId;
use crate::snapshot::{Format, Snapshot, SnapshotKind, State};
use crate::timestamp::Timestamp;
use crate::vector::{NewNode, Vector};

/// How often an append starts again from a new tip before it gives up.
pub(crate) const ATTEMPTS: u32 = 1000;
/// The longest pause of a pusher that lost a version.
const LONGEST_PAUSE_MS: u64 = 200;

/// What a step commits.
#[derive(Clone, Debug)]
pub struct Step {
    /// The tip that it began on.
    pub basis: Snapshot,
    /// Its outputs, in order.
    pub outputs: Vec<Draft>,
    /// Its outputs that go elsewhere, in order. [`Bucket::deliver`] delivers them.
    pub outbox: Vec<Outgoing>,
    /// How it ended.
    pub end: StepEnd,
    /// What the handler could see: written into the checkpoint.
    pub record: Option<Box<RawValue>>,
}

/// How a step ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepEnd {
    /// It may go on. Without outputs, the session comes to rest.
    Continue,
    /// It waits for a push.
    Pause,
    /// It waits this many milliseconds, or for a push.
    Sleep(u64),
}

/// How an append that looks for what it appends ended.
pub(crate) struct Appended {
    /// The version that it made; the tip, if that held all of it already.
    pub(crate) snapshot: Snapshot,
    /// Whether nothing was appended, as all of it was there.
    pub(crate) repeated: bool,
}

/// A version in the making.
pub(crate) struct Next {
    kind: SnapshotKind,
    created: Timestamp,
    objects: Vec<Entry>,
    log: Vector,
    nodes: Vec<NewNode>,
    pub(crate) last: LastStep,
    step: Option<Box<RawValue>>,
    pub(crate) trace: Option<Box<RawValue>>,
}

impl Bucket {
    /// Appends entries to a session in one version, and returns that version. `hint` is a version
    /// that is known to exist.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::SessionRemoved`], [`Error::EntryTooLong`],
    /// [`Error::NewerWriter`], [`Error::Unknown`], [`Error::Contended`] or [`Error::Store`].
    pub async fn push(
        &self,
        session: &SessionId,
        hint: Option<u64>,
        drafts: &[Draft],
    ) -> Result<Snapshot, Error> {
        let entries = self.store_drafts(drafts).await?;
        let tip = self.tip(session, hint).await?;
        Ok(self.append_arrival(tip, Arrival::new(entries)).await?.snapshot)
    }

    /// Appends what `tip`, or the tip that follows it, does not hold yet.
    pub(crate) async fn append_arrival(
        &self,
        mut tip: Snapshot,
        mut arrival: Arrival,
    ) -> Result<Appended, Error> {
        let session = tip.session;
        let mut pause_ms = 2;
        for _ in 0..ATTEMPTS {
            if arrival.is_held_by(self, &tip).await? {
                return Ok(Appended { snapshot: tip, repeated: true });
            }
            let kind = match tip.state() {
                State::Due => SnapshotKind::Provisional,
                State::Sleeping { .. } | State::AtRest => SnapshotKind::Checkpoint,
            };
            let next = self.appended(&tip, kind, arrival.entries());
            if let Some(snapshot) = self.try_extend(&tip, next).await? {
                return Ok(Appended { snapshot, repeated: false });
            }
            self.pause(Duration::from_millis(pause_ms)).await;
            pause_ms = (pause_ms * 2).min(LONGEST_PAUSE_MS);
            tip = self.tip(&session, Some(tip.version + 1)).await?;
        }
        Err(Error::Contended { session, attempts: ATTEMPTS })
    }

    /// Commits a step: one checkpoint with the log it saw, its outputs, and what arrived meanwhile.
    /// What it sends elsewhere is in the checkpoint's outbox then, and [`Bucket::deliver`] delivers
    /// it.
    ///
    /// # Errors
    /// [`Error::Superseded`] if another step was committed since; [`Error::OutboxTarget`] if an
    /// output cannot go where it should; [`Error::OutboxUndelivered`] if the step began before the
    /// last one's outbox was delivered; otherwise as [`Bucket::push`].
    pub async fn commit_step(&self, step: &Step) -> Result<Snapshot, Error> {
        self.commit_step_on(step, step.basis.clone()).await
    }

    /// Commits a step whose session is known to have had `tip` since the step began.
    ///
    /// # Errors
    /// As [`Bucket::commit_step`].
    pub async fn commit_step_on(&self, step: &Step, mut tip: Snapshot) -> Result<Snapshot, Error> {
        let session = step.basis.session;
        if !step.basis.last.outbox.is_empty() {
            return Err(Error::OutboxUndelivered { session, version: step.basis.version });
        }
        let outbox = self.address(session, &step.outbox).await?;
        let outputs = self.store_drafts(&step.outputs).await?;
        for _ in 0..ATTEMPTS {
            if tip.last.version != step.basis.last.version {
                return Err(Error::Superseded { session, version: tip.last.version });
            }
            let next = self.stepped(&tip, step, &outputs, &outbox).await?;
            if let Some(made) = self.try_extend(&tip, next).await? {
                return Ok(made);
            }
            tip = self.tip(&session, Some(tip.version + 1)).await?;
        }
        Err(Error::Contended { session, attempts: ATTEMPTS })
    }

    /// Appends the entry that ends a sleep, if the session still sleeps and the time has come.
    /// Returns the tip either way.
    ///
    /// # Errors
    /// As [`Bucket::push`].
    pub async fn wake(&self, session: &SessionId, hint: Option<u64>) -> Result<Snapshot, Error> {
        for _ in 0..ATTEMPTS {
            let tip = self.tip(session, hint).await?;
            let State::Sleeping { until } = tip.state() else { return Ok(tip) };
            if self.environment.now() < until {
                return Ok(tip);
            }
            let body = format!("{{\"kind\":\"wake\",\"time\":\"{until}\"}}");
            let attributes = Attributes {
                content_type: Some("application/json".into()),
                ..Attributes::default()
            };
            let wake = Draft { event: Event::Wake, ..Draft::push(body, attributes) };
            let next = self.appended(&tip, SnapshotKind::Checkpoint, &[wake.build()?]);
            if let Some(made) = self.try_extend(&tip, next).await? {
                return Ok(made);
            }
        }
        Err(Error::Contended { session: *session, attempts: ATTEMPTS })
    }

    /// The entries of drafts, whose larger bodies are stored first.
    pub(crate) async fn store_drafts(&self, drafts: &[Draft]) -> Result<Vec<Entry>, Error> {
        let entries: Vec<Entry> = drafts.iter().map(Draft::build).collect::<Result<_, _>>()?;
        let large = drafts.iter().zip(&entries).filter(|(draft, _)| !draft.is_inline());
        try_join_all(large.map(|(draft, entry)| self.put_hashed(entry.hash(), draft.body.clone())))
            .await?;
        Ok(entries)
    }

    /// The version after `tip` with entries appended and all else as it was.
    pub(crate) fn appended(&self, tip: &Snapshot, kind: SnapshotKind, entries: &[Entry]) -> Next {
        let (mut log, mut nodes) = (tip.log.clone(), Vec::new());
        log.append(entries.iter().cloned(), &mut nodes);
        Next {
            kind,
            created: self.environment.now().max(tip.created),
            objects: entries.to_vec(),
            log,
            nodes,
            last: tip.last.clone(),
            step: None,
            trace: tip.trace.clone(),
        }
    }

    /// The version after `tip` with a step's outputs, put behind what the step saw and before what
    /// has arrived since.
    async fn stepped(
        &self,
        tip: &Snapshot,
        step: &Step,
        outputs: &[Entry],
        outbox: &[Addressed<'_>],
    ) -> Result<Next, Error> {
        let seen = step.basis.log.count();
        let arrived: Vec<Entry> =
            self.entries(&tip.log, seen..tip.log.count(), None).try_collect().await?;
        let (mut log, mut nodes) = (step.basis.log.clone(), Vec::new());
        log.append(outputs.iter().cloned().chain(arrived), &mut nodes);
        let created = self.environment.now().max(tip.created);
        let ended = match step.end {
            StepEnd::Continue if outputs.is_empty() => Ended::Empty,
            StepEnd::Continue => Ended::No,
            StepEnd::Pause => Ended::Pause,
            StepEnd::Sleep(ms) => Ended::Sleep(created.plus_millis(ms)),
        };
        let (added, version) = (outputs.len() as u64, tip.version + 1);
        let outbox: Vec<OutboxItem> = outbox
            .iter()
            .zip(0..)
            .map(|(output, index)| output.item(tip.session, version, created, index))
            .collect::<Result<_, _>>()?;
        let last = LastStep { version, seen, added, ended, outbox };
        Ok(Next {
            kind: SnapshotKind::Checkpoint,
            created,
            objects: outputs.to_vec(),
            log,
            nodes,
            last,
            step: step.record.clone(),
            trace: None,
        })
    }

    /// Makes the version after `tip`; `None` if another writer was first.
    pub(crate) async fn try_extend(
        &self,
        tip: &Snapshot,
        next: Next,
    ) -> Result<Option<Snapshot>, Error> {
        tip.check_writable()?;
        let snapshot = Snapshot {
            format: Format::PLAIN,
            digest: tip.digest,
            nonce: self.nonce(),
            session: tip.session,
            version: tip.version + 1,
            kind: next.kind,
            created: next.created,
            parent: Some(tip.digest),
            objects: next.objects,
            log: next.log,
            last: next.last,
            step: next.step,
            trace: next.trace,
        };
        self.put_snapshot(snapshot, next.nodes).await
    }

    /// Stores a snapshot, and before it the nodes that it is the first to name.
    pub(crate) async fn put_snapshot(
        &self,
        mut snapshot: Snapshot,
        nodes: Vec<NewNode>,
    ) -> Result<Option<Snapshot>, Error> {
        let bytes: Bytes = snapshot.seal()?;
        try_join_all(nodes.into_iter().map(|node| self.put_hashed(node.hash, node.bytes))).await?;
        let key = layout::snapshot(&snapshot.session, snapshot.version);
        match self.put_if_absent(&key, &bytes).await? {
            Put::Won => Ok(Some(snapshot)),
            Put::Lost => Ok(None),
        }
    }

    /// 128 random bits that tell this writer's bytes from any other's.
    pub(crate) fn nonce(&self) -> String {
        let mut bytes = [0; 16];
        self.environment.fill_random(&mut bytes);
        hex::encode(bytes)
    }
}

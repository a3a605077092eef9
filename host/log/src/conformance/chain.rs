//! A session's whole chain of snapshots, checked against itself.

use std::collections::HashSet;

use futures::TryStreamExt as _;
use object_store::path::Path;

use super::{Failure, holds, same};
use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::entry::{Entry, Event};
use crate::error::Error;
use crate::layout;
use crate::manifest::Manifest;
use crate::session_id::SessionId;
use crate::snapshot::{Ended, LastStep, Snapshot, SnapshotKind, State};
use crate::vector::{NewNode, Vector};

/// All of a session, found to be in order.
#[derive(Debug)]
pub struct Chain {
    /// Where the session comes from.
    pub manifest: Manifest,
    /// Its snapshots, from version 0.
    pub snapshots: Vec<Snapshot>,
    /// The lengths of the snapshots' bytes.
    pub lens: Vec<usize>,
    /// The log that it began with.
    pub inherited: Vec<Entry>,
    /// Its whole log.
    pub log: Vec<Entry>,
}

/// Reads a session's whole chain back and checks that
///
/// - versions are contiguous, each names the digest of the bytes of the one before, no nonce occurs
///   twice, and `created` never goes back;
/// - a push, a wake or a step made each of them: the log is what the version before says, with its
///   `objects` appended, or, for a step, put behind what the step saw;
/// - a step saw all that the step before it saw and added; kinds and states are what the chain says;
/// - every node and every object that is named is there, and is what its name says.
///
/// # Errors
/// [`Failure::Broken`] for what is not so; the others if a request fails.
pub async fn verify_chain(bucket: &Bucket, session: &SessionId) -> Result<Chain, Failure> {
    let manifest = bucket.manifest(session).await?;
    let mut chain = Chain {
        manifest,
        snapshots: Vec::new(),
        lens: Vec::new(),
        inherited: Vec::new(),
        log: Vec::new(),
    };
    let mut walk = Walk {
        bucket,
        vector: Vector::default(),
        ended: Ended::Empty,
        sound: HashSet::new(),
        nonces: HashSet::new(),
    };
    for version in 0..versions(bucket, session).await? {
        let (snapshot, len) = read(bucket, session, version).await?;
        match chain.snapshots.last() {
            None => walk.first(&mut chain, &snapshot).await?,
            Some(before) => {
                let before = before.clone();
                walk.next(&mut chain, &before, &snapshot).await?;
            }
        }
        walk.either(&snapshot).await?;
        chain.snapshots.push(snapshot);
        chain.lens.push(len);
    }
    if chain.snapshots.is_empty() {
        return Err(Error::SessionNotFound { session: *session }.into());
    }
    walk.reads_back(&chain).await?;
    Ok(chain)
}

/// How many versions there are, none missing.
async fn versions(bucket: &Bucket, session: &SessionId) -> Result<u64, Failure> {
    let folder = layout::snapshots(session);
    let keys: Vec<Path> =
        bucket.store.list(Some(&folder)).map_ok(|meta| meta.location).try_collect().await?;
    let version = |key: &Path| key.filename().and_then(layout::version_of);
    let mut found: Vec<Option<u64>> = keys.iter().map(version).collect();
    found.sort_unstable();
    let expected: Vec<Option<u64>> = (0..found.len() as u64).map(Some).collect();
    same("versions are contiguous from 0", &found, &expected)?;
    Ok(found.len() as u64)
}

async fn read(
    bucket: &Bucket,
    session: &SessionId,
    version: u64,
) -> Result<(Snapshot, usize), Failure> {
    let key = layout::snapshot(session, version);
    let missing = || Error::corrupt(&key, "it is listed, but not there");
    let bytes = bucket.get_file(&key).await?.ok_or_else(missing)?;
    let snapshot = Snapshot::parse(&bytes, *session, version)?;
    same("a snapshot's digest is that of its bytes", &snapshot.digest(), &Digest::of(&bytes))?;
    Ok((snapshot, bytes.len()))
}

/// What was found so far.
struct Walk<'a> {
    bucket: &'a Bucket,
    vector: Vector,
    ended: Ended,
    sound: HashSet<Digest>,
    nonces: HashSet<String>,
}

impl Walk<'_> {
    async fn first(&mut self, chain: &mut Chain, first: &Snapshot) -> Result<(), Failure> {
        let (bucket, manifest) = (self.bucket, &chain.manifest);
        let parent = manifest.parent.as_ref().map(|parent| parent.snapshot);
        same("version 0 follows what the manifest says", &first.parent, &parent)?;
        let in_order = first.created >= manifest.created;
        holds("created never goes back", in_order, || first.created.to_string())?;
        same("version 0 is a checkpoint", &first.kind, &SnapshotKind::Checkpoint)?;
        let none = (0, first.log.count() - first.objects.len() as u64, 0, Ended::Empty);
        same("no step was made yet", &last(&first.last), &none)?;
        let inherited = bucket.entries(&first.log, 0..first.last.seen, None);
        chain.inherited = inherited.try_collect().await?;
        chain.log.clone_from(&chain.inherited);
        chain.log.extend(first.objects.iter().cloned());
        let nodes = self.rebuild(&chain.log);
        self.nodes_are_sound(&nodes).await
    }

    async fn next(
        &mut self,
        chain: &mut Chain,
        before: &Snapshot,
        next: &Snapshot,
    ) -> Result<(), Failure> {
        same("a snapshot names the one before", &next.parent, &Some(before.digest()))?;
        let in_order = next.created >= before.created;
        holds("created never goes back", in_order, || next.created.to_string())?;
        let nodes = if next.last.version == next.version {
            self.step(chain, before, next)?
        } else {
            self.push(chain, before, next)?
        };
        self.nodes_are_sound(&nodes).await
    }

    fn step(
        &mut self,
        chain: &mut Chain,
        before: &Snapshot,
        next: &Snapshot,
    ) -> Result<Vec<NewNode>, Failure> {
        let (seen, known) = (next.last.seen, before.last.seen + before.last.added);
        let range = known..=before.log.count();
        holds("a step saw what the step before saw and added", range.contains(&seen), || {
            format!("version {} saw {seen} entries, not {range:?}", next.version)
        })?;
        same("a step is a checkpoint", &next.kind, &SnapshotKind::Checkpoint)?;
        same("a step counts its outputs", &next.last.added, &(next.objects.len() as u64))?;
        let idle = next.objects.is_empty();
        holds(
            "a step that adds nothing does not go on",
            !(idle && next.last.ended == Ended::No),
            || format!("version {}", next.version),
        )?;
        let at = usize::try_from(seen).unwrap_or(usize::MAX);
        chain.log.splice(at..at, next.objects.iter().cloned());
        self.ended = next.last.ended;
        Ok(self.rebuild(&chain.log))
    }

    fn push(
        &mut self,
        chain: &mut Chain,
        before: &Snapshot,
        next: &Snapshot,
    ) -> Result<Vec<NewNode>, Failure> {
        same("a push leaves the last step", &last(&next.last), &last(&before.last))?;
        let due = before.state() == State::Due;
        let kind = if due { SnapshotKind::Provisional } else { SnapshotKind::Checkpoint };
        same("a push's kind follows from the state before", &next.kind, &kind)?;
        if next.objects.iter().any(|entry| entry.event() == Event::Wake) {
            let asleep =
                matches!(before.state(), State::Sleeping { until } if until <= next.created);
            holds(
                "a wake ends a sleep whose time has come",
                asleep && next.objects.len() == 1,
                || format!("version {} after {:?}", next.version, before.state()),
            )?;
        }
        chain.log.extend(next.objects.iter().cloned());
        let mut nodes = Vec::new();
        self.vector.append(next.objects.iter().cloned(), &mut nodes);
        Ok(nodes)
    }

    /// What holds for every version.
    async fn either(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        let version = snapshot.version;
        let new = self.nonces.insert(snapshot.nonce().to_owned());
        holds("no nonce occurs twice", new, || format!("version {version}"))?;
        same("the log is what the chain says", &snapshot.log, &self.vector)?;
        let unseen = self.vector.count() - snapshot.last.seen - snapshot.last.added;
        let state = match self.ended {
            Ended::Sleep(until) if unseen == 0 => State::Sleeping { until },
            Ended::Pause | Ended::Empty if unseen == 0 => State::AtRest,
            _ => State::Due,
        };
        same("the tip's state is the chain's", &snapshot.state(), &state)?;
        for entry in snapshot.objects.iter().filter(|entry| entry.data().is_none()) {
            let size = self.bucket.get_object(&entry.hash()).await?.len() as u64;
            same("an object's size is its entry's", &size, &entry.size())?;
        }
        Ok(())
    }

    /// Makes the vector of a log from scratch.
    fn rebuild(&mut self, log: &[Entry]) -> Vec<NewNode> {
        let mut nodes = Vec::new();
        self.vector = Vector::default();
        self.vector.append(log.iter().cloned(), &mut nodes);
        nodes
    }

    async fn nodes_are_sound(&mut self, nodes: &[NewNode]) -> Result<(), Failure> {
        for node in nodes {
            if self.sound.insert(node.hash) {
                self.bucket.node_bytes(&node.hash).await?;
            }
        }
        Ok(())
    }

    /// The log as any reader gets it.
    async fn reads_back(&self, chain: &Chain) -> Result<(), Failure> {
        let Some(tip) = chain.snapshots.last() else { return Ok(()) };
        let log: Vec<Entry> =
            self.bucket.entries(&tip.log, 0..tip.log.count(), None).try_collect().await?;
        holds("the log reads back", log == chain.log, || format!("version {}", tip.version))
    }
}

fn last(last: &LastStep) -> (u64, u64, u64, Ended) {
    (last.version, last.seen, last.added, last.ended)
}

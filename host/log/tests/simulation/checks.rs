//! The invariants, checked on what the store holds when all is over. Snapshots never change, so
//! each version stands for what was there at every crash between it and the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures::TryStreamExt as _;
use object_store::path::Path;
use pugmark_log::conformance::{Chain, verify_chain};
use pugmark_log::{
    Bucket, Digest, Entry, Error, NodeCache, SessionId, Snapshot, SnapshotKind, State, layout,
    object_store,
};

use crate::world::{Actor, Append, Intent, Outcome, StepIntent, World};

/// No step needs more versions than this, however many push.
pub const MOST_ATTEMPTS: u32 = 64;
/// An entry of the simulation without its large bodies, at most.
const ENTRY_LEN: usize = 320;

/// A session with the hashes of its log at each version.
struct Session {
    chain: Chain,
    logs: Vec<Vec<Digest>>,
}

/// Checks the whole world. Panics with what does not hold.
pub async fn all(world: &Arc<World>) {
    let bucket = Actor::calm(world);
    for session in world.sessions() {
        let state = bucket.tip(&session, None).await.unwrap().state();
        assert_eq!(state, State::AtRest, "the runners left session {session}");
    }
    world.base().settle().await;
    let sessions = read_all(&bucket).await;
    let history = world.history.lock().unwrap().clone();
    acknowledged(&sessions, &history);
    occurrences(&sessions, &history);
    for session in sessions.values() {
        steps(session, &history);
        no_rest_with_work(session);
        whole_log(session);
        lengths(session);
    }
    forks(&bucket, &sessions, &history).await;
    write_once(world, &sessions);
}

async fn read_all(bucket: &Bucket) -> BTreeMap<SessionId, Session> {
    let mut sessions = BTreeMap::new();
    let ids: Vec<SessionId> = bucket.sessions().try_collect().await.unwrap();
    for id in ids {
        match bucket.tip(&id, None).await {
            Ok(_) => {}
            // Its creation was cut short.
            Err(Error::SessionNotFound { .. }) => continue,
            Err(other) => panic!("{other}"),
        }
        // Invariants 4, 9 and 11 are checked on the way.
        let chain = verify_chain(bucket, &id).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        let cache = Arc::new(NodeCache::new(usize::MAX));
        let mut logs = Vec::new();
        for snapshot in &chain.snapshots {
            let range = 0..snapshot.log.count();
            let log = bucket.entries(&snapshot.log, range, Some(cache.clone()));
            logs.push(log.map_ok(|entry| entry.hash()).try_collect().await.unwrap());
        }
        sessions.insert(id, Session { chain, logs });
    }
    sessions
}

/// What was acknowledged is there, as it was acknowledged.
fn acknowledged(sessions: &BTreeMap<SessionId, Session>, history: &[Append]) {
    for append in history {
        let Outcome::Done { session, version, digest } = &append.outcome else { continue };
        let session = sessions.get(session).unwrap_or_else(|| panic!("{append:?} is gone"));
        let snapshot = &session.chain.snapshots[usize::try_from(*version).unwrap()];
        assert_eq!(snapshot.digest(), *digest, "{append:?}");
        let objects: Vec<Digest> = snapshot.objects.iter().map(Entry::hash).collect();
        assert_eq!(objects, append.bodies, "{append:?}");
    }
}

/// Invariant 2, for steps and seeds as well: what is acknowledged occurs once, what is unknown at
/// most once and whole, and what is reported as not done never.
fn occurrences(sessions: &BTreeMap<SessionId, Session>, history: &[Append]) {
    let mut counts: HashMap<Digest, u32> = HashMap::new();
    for session in sessions.values() {
        let objects = session.chain.snapshots.iter().flat_map(|snapshot| &snapshot.objects);
        objects.for_each(|entry| *counts.entry(entry.hash()).or_default() += 1);
    }
    for append in history {
        let found: BTreeSet<u32> =
            append.bodies.iter().map(|body| counts.get(body).copied().unwrap_or(0)).collect();
        let allowed: &[u32] = match append.outcome {
            Outcome::Done { .. } => &[1],
            Outcome::Open | Outcome::Unknown => &[0, 1],
            Outcome::NotDone | Outcome::Superseded { .. } => &[0],
        };
        assert!(found.len() <= 1, "it is there in part: {append:?}");
        assert!(found.iter().all(|n| allowed.contains(n)), "{found:?} times: {append:?}");
    }
}

/// Invariants 1, 3 and 6.
fn steps(session: &Session, history: &[Append]) {
    let snapshots = &session.chain.snapshots;
    let id = snapshots[0].session;
    let mut bases = BTreeSet::new();
    for (before, snapshot) in snapshots.iter().zip(&snapshots[1..]) {
        if snapshot.last.version != snapshot.version {
            assert_eq!(snapshot.last.version, before.last.version);
            assert!(snapshot.step.is_none(), "a push has a step's record");
            continue;
        }
        assert!(snapshot.last.version > before.last.version, "{id}: last.version went back");
        let (append, intent) = recorded(snapshot, history);
        assert_eq!(intent.session, id);
        assert!(bases.insert(intent.basis), "{id}: two steps on version {}", intent.basis);
        assert_eq!(intent.basis, before.last.version, "{id}: a step lost and was committed");
        let seen = usize::try_from(snapshot.last.seen).unwrap();
        let whole = [&intent.input[..], &append.bodies[..]].concat();
        assert_eq!(intent.input.len(), seen, "{id}: what a step saw");
        let from = usize::try_from(snapshot.version).unwrap();
        for (later, log) in snapshots.iter().zip(&session.logs).skip(from) {
            if later.kind == SnapshotKind::Checkpoint {
                assert!(log.starts_with(&whole), "{id}: input and outputs lead {}", later.version);
            }
        }
    }
    for append in history {
        let Intent::Step(intent) = &append.intent else { continue };
        assert!(intent.attempts <= MOST_ATTEMPTS, "{} attempts: {append:?}", intent.attempts);
        if let (true, Outcome::Superseded { version }) = (intent.session == id, &append.outcome) {
            let winner = &snapshots[usize::try_from(*version).unwrap()];
            assert_eq!(winner.last.version, *version, "a step lost to what is no step");
            assert!(*version > intent.basis, "a step lost to its own basis");
        }
    }
}

/// What the runner that made a version wanted.
fn recorded<'a>(snapshot: &Snapshot, history: &'a [Append]) -> (&'a Append, &'a StepIntent) {
    let record = snapshot.step.as_ref().expect("a step has its record").get();
    let record: serde_json::Value = serde_json::from_str(record).unwrap();
    let append = &history[usize::try_from(record["append"].as_u64().unwrap()).unwrap()];
    let Intent::Step(intent) = &append.intent else { panic!("{append:?} is no step") };
    (append, intent)
}

/// Invariant 5, at every version and so at every crash point. The outbox is empty so far, and by
/// invariant 8 there is no trace.
fn no_rest_with_work(session: &Session) {
    for (snapshot, log) in session.chain.snapshots.iter().zip(&session.logs) {
        let known = snapshot.last.seen + snapshot.last.added;
        let unseen = log.len() as u64 - known;
        let at_rest = snapshot.state() != State::Due;
        assert!(!at_rest || unseen == 0, "version {} rests with {unseen}", snapshot.version);
        assert!(snapshot.last.outbox.is_none());
        assert!(snapshot.trace.is_none());
    }
}

/// Invariant 12.
fn whole_log(session: &Session) {
    let objects = session.chain.snapshots.iter().flat_map(|snapshot| &snapshot.objects);
    let mut union: Vec<Digest> =
        session.chain.inherited.iter().chain(objects).map(Entry::hash).collect();
    let mut log = session.logs.last().unwrap().clone();
    union.sort_unstable();
    log.sort_unstable();
    assert_eq!(union, log, "the objects of all snapshots are the log");
}

/// Invariant 13, of snapshots. Nodes are completed every 32nd entry.
fn lengths(session: &Session) {
    for (snapshot, len) in session.chain.snapshots.iter().zip(&session.chain.lens) {
        let levels = 2 * 32 * 80;
        let most = 1024 + levels + ENTRY_LEN * (31 + snapshot.objects.len());
        assert!(*len <= most, "version {} has {len} bytes", snapshot.version);
    }
}

/// A fork has its parent's log at that version, and is in its parent's index.
async fn forks(bucket: &Bucket, sessions: &BTreeMap<SessionId, Session>, history: &[Append]) {
    for (id, session) in sessions {
        let Some(parent) = &session.chain.manifest.parent else { continue };
        let version = usize::try_from(parent.version).unwrap();
        let forked = &sessions[&parent.session];
        assert_eq!(forked.chain.snapshots[version].digest(), parent.snapshot);
        let inherited: Vec<Digest> = session.chain.inherited.iter().map(Entry::hash).collect();
        assert_eq!(inherited, forked.logs[version], "what {id} inherits");
        assert!(session.chain.snapshots[0].created >= forked.chain.snapshots[version].created);
        let children = bucket.children(&parent.session).await.unwrap();
        assert!(children.contains(id), "{id} is in no index");
    }
    for append in history {
        let Intent::Fork { parent, version, digest } = &append.intent else { continue };
        let Outcome::Done { session, .. } = &append.outcome else { continue };
        let found = sessions[session].chain.manifest.parent.as_ref().unwrap();
        assert_eq!((found.session, found.version, found.snapshot), (*parent, *version, *digest));
    }
}

/// Invariant 9 and, as far as nothing is removed, 10: every key is written once, and what a
/// snapshot names is written before it.
fn write_once(world: &World, sessions: &BTreeMap<SessionId, Session>) {
    let mut written: HashMap<Path, usize> = HashMap::new();
    for (order, write) in world.base().writes().into_iter().enumerate() {
        let before = written.insert(write.key.clone(), order);
        assert_eq!(before, None, "{} was written twice", write.key);
    }
    for snapshot in sessions.values().flat_map(|session| &session.chain.snapshots) {
        let at = written[&layout::snapshot(&snapshot.session, snapshot.version)];
        let log: serde_json::Value = serde_json::from_slice(&snapshot.log.to_json()).unwrap();
        let levels = log["levels"].as_array().unwrap();
        let nodes = levels.iter().flat_map(|level| level.as_array().unwrap());
        let nodes = nodes.map(|node| node.as_str().unwrap().parse::<Digest>().unwrap());
        let large = snapshot.objects.iter().filter(|entry| entry.data().is_none());
        for hash in nodes.chain(large.map(Entry::hash)) {
            assert!(written[&layout::object(&hash)] < at, "{hash} comes after what names it");
        }
    }
}

//! The invariants, checked on what the store holds when all is over. Snapshots never change, so
//! each version stands for what was there at every crash between it and the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures::TryStreamExt as _;
use object_store::path::Path;
use pugmark_log::conformance::{Chain, verify_chain};
use pugmark_log::{
    Bucket, Collect, Collected, Damage, Digest, Entry, Error, Finding, NodeCache, SessionId,
    Snapshot, SnapshotKind, State, Target, layout, object_store,
};

use crate::effects;
use crate::world::{Actor, Append, GRACE_MS, Intent, Outcome, StepIntent, World, mark};

/// No step needs more versions than this, however many push.
pub const MOST_ATTEMPTS: u32 = 64;
/// An entry of the simulation without its large bodies, at most.
const ENTRY_LEN: usize = 520;

/// A session with the marks of its log at each version.
struct Session {
    chain: Chain,
    logs: Vec<Vec<Digest>>,
}

/// Checks the whole world. Panics with what does not hold.
pub async fn all(world: &Arc<World>) {
    let bucket = Actor::calm(world);
    for session in world.sessions() {
        match bucket.tip(&session, None).await {
            Ok(tip) => {
                assert_eq!(tip.state(), State::AtRest, "the runners left session {session}");
            }
            Err(Error::SessionRemoved { .. }) => {}
            Err(other) => panic!("{session}: {other}"),
        }
    }
    world.base().settle().await;
    let sessions = read_all(&bucket).await;
    let history = world.history.lock().unwrap().clone();
    acknowledged(&sessions, &history);
    occurrences(&sessions, &history);
    deliveries(&sessions, &history);
    for session in sessions.readable.values() {
        steps(session, &history);
        no_rest_with_work(session);
        effects::check(world, &session.chain.snapshots);
        whole_log(session);
        lengths(session);
    }
    forks(&bucket, &sessions, &history).await;
    write_once(world, &sessions);
    if world.collects() {
        collected(world, &bucket, &sessions).await;
    }
}

/// All sessions that came to be.
struct Sessions {
    readable: BTreeMap<SessionId, Session>,
    removed: BTreeSet<SessionId>,
}

impl Sessions {
    /// How often each mark occurs, and where.
    fn places(&self) -> HashMap<Digest, Vec<SessionId>> {
        let mut places: HashMap<Digest, Vec<SessionId>> = HashMap::new();
        for (id, session) in &self.readable {
            for entry in session.chain.snapshots.iter().flat_map(|snapshot| &snapshot.objects) {
                places.entry(mark(entry)).or_default().push(*id);
            }
        }
        places
    }
}

async fn read_all(bucket: &Bucket) -> Sessions {
    let mut sessions = Sessions { readable: BTreeMap::new(), removed: BTreeSet::new() };
    let listed: Vec<SessionId> = bucket.sessions().try_collect().await.unwrap();
    for id in all_ids(bucket).await {
        match bucket.tip(&id, None).await {
            Ok(_) => assert!(listed.contains(&id), "{id} is hidden"),
            // Its creation was cut short.
            Err(Error::SessionNotFound { .. }) => continue,
            Err(Error::SessionRemoved { .. }) => {
                sessions.removed.insert(id);
                continue;
            }
            Err(other) => panic!("{other}"),
        }
        // Invariants 4, 9 and 11 are checked on the way.
        let chain = verify_chain(bucket, &id).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        let cache = Arc::new(NodeCache::new(usize::MAX));
        let mut logs = Vec::new();
        for snapshot in &chain.snapshots {
            let range = 0..snapshot.log.count();
            let log = bucket.entries(&snapshot.log, range, Some(cache.clone()));
            logs.push(log.map_ok(|entry| mark(&entry)).try_collect().await.unwrap());
        }
        sessions.readable.insert(id, Session { chain, logs });
    }
    sessions
}

/// All sessions that have a file, whatever listings say.
async fn all_ids(bucket: &Bucket) -> BTreeSet<SessionId> {
    let folder = Path::from(layout::SESSIONS);
    let keys = bucket.store().list(Some(&folder)).map_ok(|meta| meta.location);
    let keys: Vec<Path> = keys.try_collect().await.unwrap();
    let of = |key: &Path| key.parts().nth(5).and_then(|id| id.as_ref().parse().ok());
    keys.iter().filter_map(of).collect()
}

/// What was acknowledged is there, as it was acknowledged.
fn acknowledged(sessions: &Sessions, history: &[Append]) {
    for append in history {
        let Outcome::Done { session, version, digest } = &append.outcome else { continue };
        if sessions.removed.contains(session) {
            continue;
        }
        let found = sessions.readable.get(session);
        let session = found.unwrap_or_else(|| panic!("{append:?} is gone"));
        let snapshot = &session.chain.snapshots[usize::try_from(*version).unwrap()];
        assert_eq!(snapshot.digest(), *digest, "{append:?}");
        let objects: Vec<Digest> = snapshot.objects.iter().map(mark).collect();
        assert_eq!(objects, append.bodies, "{append:?}");
    }
}

/// Invariant 2, for steps and seeds as well: what is acknowledged occurs once, what is unknown at
/// most once and whole, and what is reported as not done never.
fn occurrences(sessions: &Sessions, history: &[Append]) {
    let places = sessions.places();
    for append in history {
        let found: BTreeSet<usize> =
            append.bodies.iter().map(|body| places.get(body).map_or(0, Vec::len)).collect();
        let allowed: &[usize] = match &append.outcome {
            Outcome::Done { session, .. } | Outcome::Held { session }
                if sessions.removed.contains(session) =>
            {
                &[0]
            }
            Outcome::Done { .. } | Outcome::Held { .. } => &[1],
            Outcome::Open | Outcome::Unknown => &[0, 1],
            Outcome::NotDone | Outcome::Superseded { .. } | Outcome::Removed => &[0],
        };
        assert!(found.len() <= 1, "it is there in part: {append:?}");
        assert!(found.iter().all(|n| allowed.contains(n)), "{found:?} times: {append:?}");
        if let Intent::Push { session } = &append.intent {
            let mut at = append.bodies.iter().filter_map(|body| places.get(body)).flatten();
            assert!(at.all(|place| place == session), "it is elsewhere: {append:?}");
        }
    }
}

/// Invariant 7: what a committed step sent is where it was sent to, once, and what another one sent
/// is nowhere.
fn deliveries(sessions: &Sessions, history: &[Append]) {
    let places = sessions.places();
    let nowhere = Vec::new();
    let snapshots = sessions.readable.values().flat_map(|session| &session.chain.snapshots);
    let committed: BTreeSet<usize> =
        snapshots.filter(|snapshot| snapshot.step.is_some()).map(recorded_index).collect();
    for (index, append) in history.iter().enumerate() {
        let Intent::Step(intent) = &append.intent else { continue };
        let readable = sessions.readable.contains_key(&intent.session);
        let in_chain = readable.then(|| committed.contains(&index));
        for (sent, target) in &intent.sent {
            let found = places.get(sent).unwrap_or(&nowhere);
            assert!(found.len() <= 1, "it is there {} times: {append:?}", found.len());
            let lost = match target {
                Target::Session(to) => {
                    assert!(found.iter().all(|at| at == to), "it is elsewhere: {append:?}");
                    sessions.removed.contains(to)
                }
                Target::Fork => !sessions.removed.is_empty(),
            };
            match (in_chain, &append.outcome) {
                (Some(true), _) | (None, Outcome::Done { .. }) => {
                    assert!(lost || found.len() == 1, "it was not delivered: {append:?}");
                }
                (Some(false), _) | (None, Outcome::NotDone | Outcome::Superseded { .. }) => {
                    assert!(found.is_empty(), "it was delivered: {append:?}");
                }
                // The session was removed, and nobody knows.
                (None, _) => {}
            }
        }
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

fn recorded_index(snapshot: &Snapshot) -> usize {
    let record = snapshot.step.as_ref().expect("a step has its record").get();
    let record: serde_json::Value = serde_json::from_str(record).unwrap();
    usize::try_from(record["append"].as_u64().unwrap()).unwrap()
}

/// What the runner that made a version wanted.
fn recorded<'a>(snapshot: &Snapshot, history: &'a [Append]) -> (&'a Append, &'a StepIntent) {
    let append = &history[recorded_index(snapshot)];
    let Intent::Step(intent) = &append.intent else { panic!("{append:?} is no step") };
    (append, intent)
}

/// Invariant 5, at every version and so at every crash point.
fn no_rest_with_work(session: &Session) {
    for (snapshot, log) in session.chain.snapshots.iter().zip(&session.logs) {
        let known = snapshot.last.seen + snapshot.last.added;
        let unseen = log.len() as u64 - known;
        let at_rest = snapshot.state() != State::Due;
        assert!(!at_rest || unseen == 0, "version {} rests with {unseen}", snapshot.version);
        assert!(!at_rest || snapshot.last.outbox.is_empty(), "it rests with an outbox");
    }
}

/// Invariant 12.
fn whole_log(session: &Session) {
    let objects = session.chain.snapshots.iter().flat_map(|snapshot| &snapshot.objects);
    let mut union: Vec<Digest> = session.chain.inherited.iter().chain(objects).map(mark).collect();
    let mut log = session.logs.last().unwrap().clone();
    union.sort_unstable();
    log.sort_unstable();
    assert_eq!(union, log, "the objects of all snapshots are the log");
}

/// Invariant 13, of snapshots. Nodes are completed every 32nd entry.
fn lengths(session: &Session) {
    for (snapshot, len) in session.chain.snapshots.iter().zip(&session.chain.lens) {
        let levels = 2 * 32 * 80;
        let entries = 31 + snapshot.objects.len() + snapshot.last.outbox.len();
        let records = [&snapshot.step, &snapshot.trace].into_iter().flatten();
        let records: usize = records.map(|record| record.get().len()).sum();
        let most = 1024 + levels + ENTRY_LEN * entries + records;
        assert!(*len <= most, "version {} has {len} bytes", snapshot.version);
    }
}

/// A fork has its parent's log at that version, and is in its parent's index.
async fn forks(bucket: &Bucket, sessions: &Sessions, history: &[Append]) {
    for (id, session) in &sessions.readable {
        let Some(parent) = &session.chain.manifest.parent else { continue };
        let children = bucket.children(&parent.session).await.unwrap();
        assert!(children.contains(id), "{id} is in no index");
        let version = usize::try_from(parent.version).unwrap();
        if sessions.removed.contains(&parent.session) {
            continue;
        }
        let forked = &sessions.readable[&parent.session];
        assert_eq!(forked.chain.snapshots[version].digest(), parent.snapshot);
        let inherited: Vec<Digest> = session.chain.inherited.iter().map(mark).collect();
        assert_eq!(inherited, forked.logs[version], "what {id} inherits");
        assert!(session.chain.snapshots[0].created >= forked.chain.snapshots[version].created);
    }
    for append in history {
        let Intent::Fork { parent, version, digest } = &append.intent else { continue };
        let Outcome::Done { session, .. } = &append.outcome else { continue };
        let Some(session) = sessions.readable.get(session) else { continue };
        let found = session.chain.manifest.parent.as_ref().unwrap();
        assert_eq!((found.session, found.version, found.snapshot), (*parent, *version, *digest));
    }
}

/// Invariant 9 and 10: no version is written twice but for a tombstone in its place, no manifest
/// with other bytes, and what a snapshot names is written before it.
fn write_once(world: &World, sessions: &Sessions) {
    let mut written: HashMap<Path, usize> = HashMap::new();
    for (order, write) in world.base().writes().into_iter().enumerate() {
        let again = written.contains_key(&write.key);
        written.entry(write.key.clone()).or_insert(order);
        let key = write.key.as_ref();
        let session = write.key.parts().nth(5).and_then(|id| id.as_ref().parse().ok());
        let removed = session.is_some_and(|id| sessions.removed.contains(&id));
        let frozen = key.contains("/snapshots/") && !removed;
        assert!(!again || !frozen, "{key} was written twice");
        assert!(!again || !key.contains("/snapshots/") || !write.created, "{key} was freed");
        assert!(!again || world.collects(), "{key} was written again, and nothing is collected");
    }
    for snapshot in sessions.readable.values().flat_map(|session| &session.chain.snapshots) {
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

/// Long after, a collection frees all that nothing names, and nothing else.
async fn collected(world: &World, bucket: &Bucket, sessions: &Sessions) {
    world.clock.advance(GRACE_MS * 2);
    let collect = |dry_run| bucket.collect(Collect { dry_run }).try_collect::<Vec<_>>();
    let would: Vec<Collected> = collect(true).await.unwrap();
    let did: Vec<Collected> = collect(false).await.unwrap();
    let keys = |collected: &[Collected]| -> BTreeSet<String> {
        let garbage = collected.iter().filter_map(|of| match of {
            Collected::Garbage(garbage) => Some(garbage.key.clone()),
            Collected::Marked(_) => None,
        });
        garbage.collect()
    };
    assert_eq!(keys(&would), keys(&did), "a dry run says what is deleted");
    let again: Vec<Collected> = collect(false).await.unwrap();
    assert_eq!(keys(&again), BTreeSet::new(), "nothing is left to delete");
    let Collected::Marked(marked) = &again[0] else { panic!("{again:?}") };
    let folder = Path::from(layout::OBJECTS);
    let objects: Vec<_> = bucket.store().list(Some(&folder)).try_collect().await.unwrap();
    assert_eq!(objects.len() as u64, marked.objects, "all objects that are left are named");
    for id in sessions.readable.keys() {
        verify_chain(bucket, id).await.unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    for id in &sessions.removed {
        for version in [0, 1] {
            let read = bucket.snapshot_named(id, version).await;
            assert!(matches!(read, Err(Error::SessionRemoved { .. })), "{id}: {read:?}");
        }
    }
    let findings: Vec<Finding> = bucket.verify().try_collect().await.unwrap();
    assert!(findings.iter().all(|finding| finding.damage == Damage::Minor), "{findings:?}");
}

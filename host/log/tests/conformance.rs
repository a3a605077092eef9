//! The conformance suite over memory, local files and a store that fails; races between threads;
//! and a crash at every operation of every append.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt as _};
use pugmark_log::conformance::{Chain, run, verify_chain};
use pugmark_log::faults::{Calm, CrashAt, FaultyStore, Rates, Seeded};
use pugmark_log::{
    Attributes, Bucket, Collect, Draft, Environment as _, Error, Outgoing, Snapshot, State, Step,
    StepEnd, Target, TipLookup, object_store,
};
use support::{Manual, block_on, bucket};

#[test]
fn memory_conforms() {
    block_on(run(&bucket(Arc::new(InMemory::new()), Manual::new(1)))).unwrap();
}

#[test]
fn local_files_with_fsync_conform() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalFileSystem::new_with_prefix(folder.path()).unwrap().with_fsync(true);
    block_on(run(&bucket(Arc::new(store), Manual::new(2)))).unwrap();
}

#[test]
fn memory_conforms_with_tips_by_page() {
    let store = Arc::new(FaultyStore::new(Arc::new(InMemory::new()), Arc::new(Calm)));
    let bucket = Bucket::new(store.clone(), TipLookup::Page(store), Manual::new(3));
    block_on(run(&bucket)).unwrap();
}

#[test]
fn a_store_that_fails_conforms() {
    for seed in 0..12 {
        let schedule = Seeded::new(seed, Rates::creates(300), 3);
        let store = Arc::new(FaultyStore::new(Arc::new(InMemory::new()), Arc::new(schedule)));
        let tips = if seed % 2 == 0 { TipLookup::Probe } else { TipLookup::Page(store.clone()) };
        let result = block_on(run(&Bucket::new(store, tips, Manual::new(seed))));
        assert!(result.is_ok(), "seed {seed}: {:?}", result.err());
    }
}

fn drafts(texts: &[&str]) -> Vec<Draft> {
    texts.iter().map(|text| Draft::push(text.to_string(), Attributes::default())).collect()
}

/// Eight threads push, one makes steps, all at once on one session.
fn race(store: &Arc<dyn ObjectStore>) {
    const THREADS: u64 = 8;
    const PUSHES: u64 = 20;
    let calm = bucket(store.clone(), Manual::new(99));
    let session = block_on(calm.start(None, BTreeMap::new())).unwrap().session;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let bucket = bucket(store.clone(), Manual::new(thread));
            scope.spawn(move || {
                let mut hint = None;
                for i in 0..PUSHES {
                    let drafts = drafts(&[&format!("{thread}-{i}")]);
                    let made = block_on(bucket.push(&session, hint, &drafts)).unwrap();
                    hint = Some(made.version);
                }
            });
        }
        let runner = bucket(store.clone(), Manual::new(50));
        scope.spawn(move || {
            for i in 0..PUSHES {
                let basis = block_on(runner.tip(&session, None)).unwrap();
                let outputs = drafts(&[&format!("step-{i}")]);
                let step = Step {
                    basis,
                    outputs,
                    outbox: Vec::new(),
                    end: StepEnd::Continue,
                    record: None,
                };
                block_on(runner.commit_step(&step)).unwrap();
            }
        });
    });
    let chain = block_on(verify_chain(&calm, &session)).unwrap();
    assert_eq!(chain.snapshots.len() as u64, 1 + THREADS * PUSHES + PUSHES);
    let found: BTreeSet<_> = chain.log.iter().map(|entry| entry.data().unwrap().clone()).collect();
    assert_eq!(found.len() as u64, THREADS * PUSHES + PUSHES);
    assert_eq!(found.len(), chain.log.len());
}

#[test]
fn threads_race_in_memory() {
    race(&(Arc::new(InMemory::new()) as Arc<dyn ObjectStore>));
}

#[test]
fn threads_race_on_local_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalFileSystem::new_with_prefix(folder.path()).unwrap().with_fsync(true);
    race(&(Arc::new(store) as Arc<dyn ObjectStore>));
}

/// An append to a session at `tip`, whatever comes of it.
type Append = fn(Bucket, Snapshot) -> BoxFuture<'static, Result<Snapshot, Error>>;

const BIG: usize = 2000;

fn push(bucket: Bucket, tip: Snapshot) -> BoxFuture<'static, Result<Snapshot, Error>> {
    async move { bucket.push(&tip.session, None, &drafts(&["p1", &"p".repeat(BIG)])).await }.boxed()
}

fn step(bucket: Bucket, basis: Snapshot) -> BoxFuture<'static, Result<Snapshot, Error>> {
    let outputs = drafts(&["s1", &"s".repeat(BIG)]);
    let step = Step { basis, outputs, outbox: Vec::new(), end: StepEnd::Pause, record: None };
    async move { bucket.commit_step(&step).await }.boxed()
}

fn fork(bucket: Bucket, parent: Snapshot) -> BoxFuture<'static, Result<Snapshot, Error>> {
    async move { bucket.fork(&parent, &drafts(&["f1", &"f".repeat(BIG)])).await }.boxed()
}

/// Runs an append that dies at its `at`th operation on a session of 31 entries, so that it also
/// completes a node. Returns whether it died, and what is there then.
fn crash(append: Append, at: u64, done: bool) -> (bool, Chain, Vec<Chain>) {
    let calm = FaultyStore::new(Arc::new(InMemory::new()), Arc::new(Calm));
    let environment = Manual::new(7);
    let survivor = bucket(Arc::new(calm.clone()), environment.clone());
    let dying = calm.with_schedule(Arc::new(CrashAt::new(at, done)));
    let dying = bucket(Arc::new(dying), environment);
    block_on(async {
        let session = survivor.start(None, BTreeMap::new()).await.unwrap().session;
        let texts: Vec<String> = (0..31).map(|i| format!("old {i}")).collect();
        let old: Vec<&str> = texts.iter().map(String::as_str).collect();
        let tip = survivor.push(&session, None, &drafts(&old)).await.unwrap();
        let died = append(dying, tip).now_or_never().is_none();
        let mut forks = Vec::new();
        for child in survivor.children(&session).await.unwrap() {
            match survivor.tip(&child, None).await {
                Ok(_) => forks.push(verify_chain(&survivor, &child).await.unwrap()),
                Err(Error::SessionNotFound { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        (died, verify_chain(&survivor, &session).await.unwrap(), forks)
    })
}

/// Crashes an append at each of its operations in turn; `whole` says whether it took effect, having
/// found that it did so whole or not at all.
fn crash_everywhere(append: Append, whole: impl Fn(&Chain, &[Chain]) -> bool) {
    for done in [false, true] {
        let mut came_whole = Vec::new();
        for at in 0.. {
            let (died, chain, forks) = crash(append, at, done);
            came_whole.push(whole(&chain, &forks));
            if !died {
                break;
            }
        }
        assert!(came_whole.len() >= 4, "operations: {}", came_whole.len());
        assert!(came_whole.is_sorted(), "it took effect and was undone: {came_whole:?}");
        // Only the last operation makes it so.
        let effective = came_whole.iter().filter(|whole| **whole).count();
        assert_eq!(effective, if done { 2 } else { 1 }, "{came_whole:?}");
    }
}

#[test]
fn a_push_that_crashes_is_whole_or_nothing() {
    crash_everywhere(push, |chain, _| match chain.log.len() {
        31 => false,
        33 => chain.snapshots.last().unwrap().state() == State::Due,
        other => panic!("{other} entries"),
    });
}

#[test]
fn a_step_that_crashes_is_whole_or_nothing() {
    crash_everywhere(step, |chain, _| {
        let state = chain.snapshots.last().unwrap().state();
        match chain.log.len() {
            31 => assert_eq!(state, State::Due),
            33 => assert_eq!(state, State::AtRest),
            other => panic!("{other} entries"),
        }
        chain.log.len() == 33
    });
}

#[test]
fn a_fork_that_crashes_is_whole_or_nothing() {
    crash_everywhere(fork, |parent, forks| {
        assert_eq!(parent.log.len(), 31);
        for fork in forks {
            assert_eq!(fork.log.len(), 33);
        }
        forks.len() == 1
    });
}

/// A store whose clock is the environment's, so that collections see what is old.
fn timed(environment: &Arc<Manual>) -> FaultyStore {
    let environment = environment.clone();
    FaultyStore::new(Arc::new(InMemory::new()), Arc::new(Calm))
        .with_clock(move || environment.now().as_millis())
}

/// What a delivery that died at its `at`th operation left is delivered by another.
fn crash_a_delivery(at: u64, done: bool) -> bool {
    let environment = Manual::new(8);
    let calm = timed(&environment);
    let survivor = bucket(Arc::new(calm.clone()), environment.clone());
    let dying = calm.with_schedule(Arc::new(CrashAt::new(at, done)));
    let dying = bucket(Arc::new(dying), environment);
    block_on(async {
        let start = async || survivor.start(None, BTreeMap::new()).await.unwrap().session;
        let targets = [start().await, start().await];
        let session = start().await;
        let basis = survivor.push(&session, None, &drafts(&["p"])).await.unwrap();
        let send = |text: &str, target| Outgoing { draft: drafts(&[text])[0].clone(), target };
        let outbox = vec![
            send("t0", Target::Session(targets[0])),
            send(&"f".repeat(BIG), Target::Fork),
            send("t1", Target::Session(targets[1])),
            send("u0", Target::Session(targets[0])),
        ];
        let step = Step { basis, outputs: Vec::new(), outbox, end: StepEnd::Pause, record: None };
        let tip = survivor.commit_step(&step).await.unwrap();
        let died = dying.deliver(tip).now_or_never().is_none();
        let tip = survivor.tip(&session, None).await.unwrap();
        assert_eq!(tip.state() == State::Due, !tip.last.outbox.is_empty());
        let tip = survivor.deliver(tip).await.unwrap();
        assert_eq!((tip.state(), tip.last.outbox.len()), (State::AtRest, 0));
        let children = survivor.children(&session).await.unwrap();
        assert_eq!(children.len(), 1);
        for (id, entries) in [(targets[0], 2), (targets[1], 1), (children[0], 2), (session, 1)] {
            assert_eq!(verify_chain(&survivor, &id).await.unwrap().log.len(), entries);
        }
        died
    })
}

#[test]
fn a_delivery_that_crashes_is_finished_by_another() {
    for done in [false, true] {
        let operations = (0..10_000).take_while(|at| crash_a_delivery(*at, done)).count();
        assert!(operations > 10, "{operations} operations");
    }
}

/// A session, a fork of it and an orphan; the session is removed and collected by one that dies at
/// its `at`th operation, then by another.
fn crash_a_removal(at: u64, done: bool) -> bool {
    let environment = Manual::new(9);
    let calm = timed(&environment);
    let survivor = bucket(Arc::new(calm.clone()), environment.clone());
    let dying = calm.with_schedule(Arc::new(CrashAt::new(at, done)));
    let dying = bucket(Arc::new(dying), environment.clone());
    let collect = |bucket: Bucket| async move {
        bucket.collect(Collect { dry_run: false }).try_collect::<Vec<_>>().await.unwrap()
    };
    block_on(async {
        let session = survivor.start(None, BTreeMap::new()).await.unwrap().session;
        let big = "shared".repeat(BIG);
        let point = survivor.push(&session, None, &drafts(&["p1", &big])).await.unwrap();
        let child = survivor.fork(&point, &drafts(&["seed"])).await.unwrap().session;
        survivor.push(&session, None, &drafts(&[&"own".repeat(BIG)])).await.unwrap();
        survivor.put_object("orphan".repeat(BIG).into()).await.unwrap();
        let died = dying.remove(&session).now_or_never().is_none();
        if !died {
            environment.advance(25 * 3_600_000);
        }
        let died = died || collect(dying).now_or_never().is_none();
        let removed = survivor.remove(&session).await.unwrap();
        assert_eq!(removed.version, 3);
        assert_eq!(verify_chain(&survivor, &child).await.unwrap().log.len(), 3);
        environment.advance(25 * 3_600_000);
        collect(survivor.clone()).await;
        assert_eq!(verify_chain(&survivor, &child).await.unwrap().log.len(), 3);
        assert_eq!(survivor.verify().try_collect::<Vec<_>>().await.unwrap(), []);
        let keys = calm.list(None).map_ok(|meta| meta.location.to_string());
        let keys: Vec<String> = keys.try_collect().await.unwrap();
        let objects = keys.iter().filter(|key| key.starts_with("objects/")).count();
        assert_eq!(objects, 1, "{keys:?}");
        assert!(!keys.iter().any(|key| key.starts_with("gc/")), "{keys:?}");
        died
    })
}

#[test]
fn a_removal_and_a_collection_that_crash_are_finished_by_others() {
    for done in [false, true] {
        let operations = (0..10_000).take_while(|at| crash_a_removal(*at, done)).count();
        assert!(operations > 15, "{operations} operations");
    }
}

/// A collection has looked at an old orphan and is about to delete it when a writer wants it.
#[test]
fn what_is_being_deleted_is_not_taken_for_granted() {
    let environment = Manual::new(10);
    let calm = timed(&environment);
    let writer = bucket(Arc::new(calm.clone()), environment.clone());
    let body = "again".repeat(BIG);
    let orphan = block_on(writer.put_object(body.clone().into())).unwrap();
    environment.advance(25 * 3_600_000);
    let key = pugmark_log::layout::object(&orphan);
    let announced = pugmark_log::object_store::path::Path::from("gc/somebody");
    block_on(calm.put(&announced, format!("{key}\n").into())).unwrap();
    // The writer finds it, announced: it waits until whoever announced it counts for dead.
    let before = environment.now();
    assert_eq!(block_on(writer.put_object(body.into())).unwrap(), orphan);
    let waited_ms = environment.now().as_millis() - before.as_millis();
    assert!((70_000..100_000).contains(&waited_ms), "it waited {waited_ms} ms");
    assert!(block_on(writer.keep_object(&orphan)).unwrap());
}

//! What appending and forking write: the same however long the log is.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use object_store::memory::InMemory;
use pugmark_log::faults::{Action, Calm, Fate, FaultyStore, Operation, Schedule};
use pugmark_log::{
    Attributes, Bucket, Draft, Outgoing, Snapshot, Step, StepEnd, Target, object_store,
};
use support::{Manual, block_on, bucket};

/// Steps that are averaged over: as many as it takes to complete nodes of two levels.
const STEPS: u64 = 1024;

struct Meter {
    store: FaultyStore,
    bucket: Bucket,
}

impl Meter {
    fn new() -> Self {
        let store = FaultyStore::new(Arc::new(InMemory::new()), Arc::new(Calm));
        let bucket = bucket(Arc::new(store.clone()), Manual::new(1));
        Self { store, bucket }
    }

    fn bytes(&self) -> u64 {
        self.store.writes().iter().map(|write| write.len).sum()
    }

    /// A session of `count` events of 400 bytes.
    fn session(&self, count: u64) -> Snapshot {
        let started = block_on(self.bucket.start(None, BTreeMap::new())).unwrap();
        let drafts: Vec<Draft> = (0..count).map(event).collect();
        block_on(self.bucket.push(&started.session, None, &drafts)).unwrap()
    }
}

fn event(number: u64) -> Draft {
    Draft::push(format!("{number:0400}"), Attributes::default())
}

/// Mean bytes of a step that adds one event, around a length.
fn bytes_of_a_step(count: u64) -> u64 {
    let meter = Meter::new();
    let mut tip = meter.session(count);
    let before = meter.bytes();
    for number in 0..STEPS {
        let outputs = vec![event(count + number)];
        let step =
            Step { basis: tip, outputs, outbox: Vec::new(), end: StepEnd::Continue, record: None };
        tip = block_on(meter.bucket.commit_step(&step)).unwrap();
    }
    (meter.bytes() - before) / STEPS
}

#[test]
fn a_step_writes_the_same_at_any_length() {
    let (short, long) = (bytes_of_a_step(100), bytes_of_a_step(20_000));
    eprintln!("bytes a step: {short} at 100 events, {long} at 20,000");
    assert!(long * 100 <= short * 120, "{long} bytes a step, up from {short}");
    // 31 events of the tail at most, half of them on average, and a node every 32nd.
    assert!(short < 20 * 700, "{short} bytes a step");
}

#[test]
fn a_fork_writes_the_same_at_any_length() {
    let bytes = |count| {
        let meter = Meter::new();
        let tip = meter.session(count);
        let before = (meter.bytes(), meter.store.writes().len());
        block_on(meter.bucket.fork(&tip, &[event(0)])).unwrap();
        let writes = meter.store.writes().len() - before.1;
        assert_eq!(writes, 3, "index, manifest, version 0");
        meter.bytes() - before.0
    };
    // Both lengths have a tail of ten entries.
    let (short, long) = (bytes(10), bytes(20_010));
    eprintln!("bytes a fork: {short} at 10 events, {long} at 20,010");
    assert!(long < short + 64 * 80, "only references are added");
}

#[test]
fn a_push_makes_one_request_to_write() {
    let meter = Meter::new();
    let tip = meter.session(5);
    let before = meter.store.writes().len();
    block_on(meter.bucket.push(&tip.session, Some(tip.version), &[event(1)])).unwrap();
    assert_eq!(meter.store.writes().len() - before, 1);
}

/// Counts what is read.
#[derive(Debug, Default)]
struct Reads(AtomicU64);

impl Schedule for Reads {
    fn before<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Fate> {
        if operation.action == Action::Read {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Calm.before(operation)
    }
}

/// What a bucket reads on the store of another while it does something.
fn reads<F: Future>(meter: &Meter, act: impl FnOnce(Bucket) -> F) -> u64 {
    let reads = Arc::new(Reads::default());
    let store = meter.store.with_schedule(reads.clone());
    block_on(act(bucket(Arc::new(store), Manual::new(9))));
    reads.0.load(Ordering::Relaxed)
}

#[test]
fn comparing_reads_little_of_what_is_shared() {
    let meter = Meter::new();
    let tip = meter.session(20_000);
    let fork = |seed| block_on(meter.bucket.fork(&tip, &[event(seed)])).unwrap();
    let (one, other) = (fork(1), fork(2));
    let shared = reads(&meter, async |bucket| {
        assert_eq!(bucket.common_prefix(&one.log, &other.log).await.unwrap(), 20_000);
    });
    assert_eq!(shared, 0, "both differ in their tails alone");
    let short = meter.session(0);
    let half: Vec<Draft> = (0..10_000).map(event).collect();
    let short = block_on(meter.bucket.push(&short.session, None, &half)).unwrap();
    let other: Vec<Draft> = (0..9_000).map(|i| event(1_000_000 + i)).collect();
    let other = block_on(meter.bucket.push(&short.session, None, &other)).unwrap();
    let deep = reads(&meter, async |bucket| {
        assert_eq!(bucket.common_prefix(&tip.log, &other.log).await.unwrap(), 10_000);
    });
    // Three levels of both.
    assert!(deep <= 6, "{deep} nodes were read");
}

#[test]
fn a_delivery_reads_its_target_and_no_more() {
    let meter = Meter::new();
    let target = meter.session(20_000).session;
    let basis = meter.session(1);
    let outbox = vec![Outgoing { draft: event(7), target: Target::Session(target) }];
    let end = StepEnd::Pause;
    let step = Step { basis, outputs: vec![event(8)], outbox, end, record: None };
    let tip = block_on(meter.bucket.commit_step(&step)).unwrap();
    let before = meter.store.writes().len();
    let count = reads(&meter, async |bucket| drop(bucket.deliver(tip).await.unwrap()));
    // The tip of the target, found by probing from version 0: 0, 1, 2, and its snapshot.
    assert!(count <= 6, "{count} reads");
    assert_eq!(meter.store.writes().len() - before, 2, "one at the target, one that clears");
}

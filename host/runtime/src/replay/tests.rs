use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use pugmark_log::object_store::memory::InMemory;
use pugmark_log::{
    Attributes, Digest, Draft, Ended, Environment, PAUSE_CONTENT_TYPE, Timestamp, TipLookup,
};
use tokio::runtime::Handle;

use super::*;
use crate::handler::{LogLine, LogSource as _};
use crate::lifecycle::Lifecycle;
use crate::sandbox::Settings;
use crate::step::{Context, Handler, keep_component, step};
use crate::step_log::StepLog;

/// A clock that moves a second at each look, and counts for randomness.
struct Counting(AtomicU64);

impl Environment for Counting {
    fn now(&self) -> Timestamp {
        let looks = self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_millis(1_700_000_000_000 + looks * 1000)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        for (byte, value) in bytes.iter_mut().zip(number.iter().cycle()) {
            *byte = *value;
        }
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

fn bucket() -> Bucket {
    let environment = Arc::new(Counting(0.into()));
    Bucket::new(Arc::new(InMemory::new()), TipLookup::Probe, environment)
}

fn pushed(body: &str) -> Draft {
    Draft::push(body.to_owned(), Attributes::default())
}

fn pause() -> Draft {
    let content_type = Some(PAUSE_CONTENT_TYPE.to_owned());
    Draft::push("", Attributes { content_type, ..Attributes::default() })
}

/// A program for wasip1 that writes one event with the body `body`, of four bytes.
fn program(body: &str) -> Bytes {
    let data = base64_of(body);
    assert_eq!(data.len(), 8);
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write"
                (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 64) "{{\"data\":\"{data}\"}}\n")
            (data (i32.const 0) "\40\00\00\00\14\00\00\00")
            (func (export "_start")
                (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"#
    );
    wat::parse_str(text).unwrap().into()
}

fn base64_of(body: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(body)
}

fn sandbox() -> Arc<Sandbox> {
    Arc::new(Sandbox::new(Settings::default()).unwrap())
}

/// A session of `steps` steps by a program that writes `body`.
async fn recorded(bucket: &Bucket, sandbox: &Sandbox, body: &str, steps: usize) -> Snapshot {
    let component = sandbox.load_bytes("guest", program(body)).unwrap();
    keep_component(bucket, &component).await.unwrap();
    let mut tip = bucket.start(None, BTreeMap::new()).await.unwrap();
    let context = Context {
        http: None,
        bucket: bucket.clone(),
        manifest: bucket.manifest(&tip.session).await.unwrap(),
        agent: "guest".to_owned(),
        handler: Handler::Component { component, args: Vec::new() },
        limits: Limits::default(),
        diagnostics: Arc::new(|_, _| {}),
        trace: None,
        fetcher: None,
        lifecycle: None,
        cache: None,
        keeper: None,
    };
    for _ in 0..steps {
        tip = step(&context, tip, None).await.unwrap().snapshot;
    }
    tip
}

async fn replayed(
    bucket: &Bucket,
    upto: &Snapshot,
    sandbox: &Arc<Sandbox>,
    options: Options,
) -> Report {
    let progress = Arc::new(Progress::default());
    replay(bucket, upto, sandbox, options, &progress).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_component_does_the_same() {
    let (bucket, sandbox) = (bucket(), sandbox());
    let tip = recorded(&bucket, &sandbox, "a=1\n", 40).await;
    let report = replayed(&bucket, &tip, &sandbox, Options::default()).await;
    assert_eq!((report.outcome(), report.identical), (Outcome::Identical, 40));
    let local = Options { local: true, ..Options::default() };
    assert_eq!(replayed(&bucket, &tip, &sandbox, local).await.identical, 40);
    let from = Options { from: Some(31), ..Options::default() };
    assert_eq!(replayed(&bucket, &tip, &sandbox, from).await.identical, 10);
    let other = Options { handler: Some("other".to_owned()), ..Options::default() };
    assert_eq!(replayed(&bucket, &tip, &sandbox, other).await.identical, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_component_differs_from_the_first_step_on() {
    let (bucket, sandbox) = (bucket(), sandbox());
    let tip = recorded(&bucket, &sandbox, "a=1\n", 5).await;
    let other = sandbox.load_bytes("other", program("a=2\n")).unwrap();
    for (all, different) in [(true, 5), (false, 1)] {
        let with = Some(other.clone());
        let options =
            Options { with, all, jobs: NonZeroUsize::new(4).unwrap(), ..Options::default() };
        let report = replayed(&bucket, &tip, &sandbox, options).await;
        assert_eq!((report.outcome(), report.identical), (Outcome::Different, 0));
        assert_eq!((report.different, report.ended_there), (different, !all));
        let first = report.first_difference.unwrap();
        assert_eq!(first.point, Point { session: tip.session, version: 1 });
        let bodies = |answer: &Answer| match answer {
            Answer::Outputs { outputs, ended: Ended::No } => {
                outputs.iter().map(|line| line.body.clone().unwrap()).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(bodies(&first.recorded), ["a=1\n"]);
        assert_eq!(bodies(&first.replayed), ["a=2\n"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_without_its_component_is_incomplete() {
    let (bucket, sandbox) = (bucket(), sandbox());
    let tip = recorded(&bucket, &sandbox, "a=1\n", 3).await;
    let elsewhere = self::bucket();
    copy_all_but(&bucket, &elsewhere, |key| key.starts_with("objects/")).await;
    let report = replayed(&elsewhere, &tip, &sandbox, Options::default()).await;
    assert_eq!((report.outcome(), report.identical), (Outcome::Incomplete, 0));
    let [finding] = &report.incomplete[..] else { panic!("{report:?}") };
    assert_eq!((finding.steps, finding.first.version), (3, 1));
    assert!(finding.reason.contains("is not in this bucket"), "{}", finding.reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_version_is_damage() {
    let (bucket, sandbox) = (bucket(), sandbox());
    let tip = recorded(&bucket, &sandbox, "a=1\n", 3).await;
    let key = pugmark_log::layout::snapshot(&tip.session, 2).to_string();
    let elsewhere = self::bucket();
    copy_all_but(&bucket, &elsewhere, |other| other == key).await;
    let progress = Arc::new(Progress::default());
    let error = replay(&elsewhere, &tip, &sandbox, Options::default(), &progress).await;
    let Err(Error::Log(pugmark_log::Error::Corrupt { key: found, .. })) = error else {
        panic!("{error:?}")
    };
    assert_eq!(found, key);
}

async fn copy_all_but(from: &Bucket, to: &Bucket, left_out: impl Fn(&str) -> bool) {
    use futures::TryStreamExt as _;
    use pugmark_log::object_store::ObjectStoreExt as _;

    let keys: Vec<_> = from.store().list(None).try_collect().await.unwrap();
    for key in keys.into_iter().map(|meta| meta.location) {
        if !left_out(key.as_ref()) {
            let bytes = from.store().get(&key).await.unwrap().bytes().await.unwrap();
            to.store().put(&key, bytes.into()).await.unwrap();
        }
    }
}

/// The lines of a log, one step's after the other's, as a kept instance gets them.
fn fed(shared: &Shared, lifecycle: Option<&Lifecycle>, steps: &[u64]) -> Vec<LogLine> {
    let mut feed = feed::Feed::new(shared, lifecycle, &Handle::current());
    let mut lines = Vec::new();
    for n in steps {
        let mut before = feed.before(*n);
        while let Some(line) = before.next_line().unwrap() {
            lines.push(line);
        }
    }
    lines
}

fn shown(lines: &[LogLine]) -> Vec<(u64, &'static str, Digest)> {
    lines.iter().map(|line| (line.position, line.event, line.entry.hash())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_gives_the_lines_that_a_step_reads() {
    use futures::TryStreamExt as _;

    let bucket = bucket();
    let root = bucket.start(None, BTreeMap::new()).await.unwrap();
    let mut drafts: Vec<Draft> = (0..70).map(|number| pushed(&number.to_string())).collect();
    drafts.insert(3, pause());
    drafts.insert(40, pause());
    let parent = bucket.push(&root.session, None, &drafts).await.unwrap();
    let child = bucket.fork(&parent, &[]).await.unwrap();
    let tip =
        bucket.push(&child.session, None, &[pushed("a"), pause(), pushed("b")]).await.unwrap();
    let manifest = bucket.manifest(&tip.session).await.unwrap();
    let lifecycle = Lifecycle::of(&bucket, &manifest).await.unwrap();
    let shared = Arc::new(Shared {
        bucket: bucket.clone(),
        upto: tip.clone(),
        options: Options::default(),
        components: Components::new(bucket.clone(), sandbox()),
        cache: Arc::new(NodeCache::new(0)),
        jobs: Arc::new(Semaphore::new(1)),
        tally: Tally::new(false, Arc::default()),
    });
    for lifecycle in [None, Some(lifecycle)] {
        let log = StepLog::new(bucket.clone(), &tip, None, lifecycle.clone());
        let expected: Vec<LogLine> = log.lines().try_collect().await.unwrap();
        let steps: [&[u64]; 3] = [&[75], &[72, 72, 75], &[1, 4, 33, 72, 73, 74, 75]];
        for steps in steps {
            let (shared, lifecycle) = (Arc::clone(&shared), lifecycle.clone());
            let fed = tokio::task::spawn_blocking(move || fed(&shared, lifecycle.as_ref(), steps));
            assert_eq!(shown(&fed.await.unwrap()), shown(&expected), "{steps:?}");
        }
    }
}

//! What every part needs: buckets, sessions, times.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use pugmark_log::object_store::ObjectStore;
use pugmark_log::object_store::local::LocalFileSystem;
use pugmark_log::{
    Attributes, Bucket, Draft, Environment, Manifest, NodeCache, Snapshot, Timestamp, TipLookup,
};
use pugmark_runtime::sandbox::{Component, Limits, Sandbox, Settings};
use pugmark_runtime::{Committed, Context, Handler, Watch};
use tokio::runtime::Runtime;

/// Where things are.
pub struct Setup {
    pub program: PathBuf,
    pub guests: PathBuf,
    pub large_component: Option<PathBuf>,
    pub folder: PathBuf,
}

/// A line of the table.
pub struct Row {
    pub what: String,
    pub ours: String,
    pub against: String,
    pub ratio: Option<f64>,
    pub aim: &'static str,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = self.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        write!(f, "{} | {} | {} | {ratio} | {}", self.what, self.ours, self.against, self.aim)
    }
}

impl Row {
    /// Two times and their ratio.
    pub fn times(
        what: impl Into<String>,
        ours: Duration,
        against: Duration,
        aim: &'static str,
    ) -> Self {
        Self {
            what: what.into(),
            ours: show(ours),
            against: show(against),
            ratio: Some(ours.as_secs_f64() / against.as_secs_f64()),
            aim,
        }
    }
}

/// A time for people.
pub fn show(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    if us < 1000.0 { format!("{us:.1} µs") } else { format!("{:.2} ms", us / 1000.0) }
}

/// The middle one.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How long something takes.
pub fn timed<T>(action: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = action();
    (start.elapsed(), result)
}

/// Waits until what was written is on the disk: its writing is not what is measured next.
pub fn settle() {
    let status = std::process::Command::new("sync").status().expect("sync can be run");
    assert!(status.success(), "sync: {status}");
}

struct System;

impl Environment for System {
    #[expect(clippy::disallowed_methods, reason = "the benchmark is a program of its own")]
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system has randomness");
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A bucket on local files, with fsync as the command line has it, or without to fill it quickly.
pub fn bucket(folder: &Path, fsync: bool) -> Bucket {
    let store = LocalFileSystem::new_with_prefix(folder).expect("the folder is there");
    let store: Arc<dyn ObjectStore> = Arc::new(store.with_fsync(fsync));
    Bucket::new(store, TipLookup::Probe, Arc::new(System))
}

/// The runtime that the command line uses.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("threads can be made")
}

/// A distinct event of 400 bytes.
pub fn event(number: u64) -> Draft {
    let body = format!("{{\"kind\":\"filler\",\"number\":{number},\"text\":\"{number:0>360}\"}}");
    let mut body = body.into_bytes();
    body.resize(400, b' ');
    let content_type = Some("application/json".to_owned());
    Draft::push(body, Attributes { content_type, ..Attributes::default() })
}

/// A session of so many events, in few versions; the last event came alone, as it does in use.
pub async fn session_of(bucket: &Bucket, events: u64) -> Snapshot {
    let mut tip = bucket.start(None, [].into()).await.expect("a session can be made");
    let mut next = 0;
    while next < events {
        let left = events - next;
        let end = next + if left > 1 { (left - 1).min(1000) } else { 1 };
        let drafts: Vec<Draft> = (next..end).map(event).collect();
        tip = bucket.push(&tip.session, Some(tip.version), &drafts).await.expect("pushed");
        next = end;
    }
    tip
}

/// A guest, compiled in this process.
pub fn component(setup: &Setup, name: &str) -> Component {
    let sandbox = Sandbox::new(Settings::default()).expect("a sandbox can be made");
    sandbox.load_file(&setup.guests.join(name)).expect("the guest is built: tests/build-guests.sh")
}

/// What a loop of the counter runs with.
pub async fn counter(setup: &Setup, bucket: Bucket, tip: &Snapshot) -> Context {
    let manifest: Manifest = bucket.manifest(&tip.session).await.expect("the manifest is there");
    Context {
        http: None,
        bucket,
        manifest,
        agent: "counter".to_owned(),
        handler: Handler::Component {
            component: component(setup, "counter.wasm"),
            args: Vec::new(),
        },
        limits: Limits::default(),
        diagnostics: Arc::new(|_, _| {}),
        trace: None,
        fetcher: None,
        lifecycle: None,
        cache: Some(Arc::new(NodeCache::new(16 << 20))),
        keeper: None,
    }
}

/// Watches nothing.
pub struct Quiet;

impl Watch for Quiet {
    fn begins(&mut self, _tip: &Snapshot) {}
    fn committed(&mut self, _committed: &Committed) {}
    fn sleeps(&mut self, _until: Timestamp) {}
}

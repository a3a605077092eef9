//! Records sessions in a bucket in memory whose clock and randomness are counters, so that two
//! recordings of the same are the same bytes; and replays them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryStreamExt as _};
use pugmark_log::object_store::ObjectStoreExt as _;
use pugmark_log::object_store::memory::InMemory;
use pugmark_log::{
    Attributes, Bucket, Digest, Draft, Environment, SessionId, Snapshot, Timestamp, TipLookup,
};
use pugmark_runtime::replay::{Options, Progress, Report, replay};
use pugmark_runtime::sandbox::{Component, Limits};
use pugmark_runtime::{Context, Handler, Keeper, StepError, keep_component, run};

use crate::guests::{Guest, Session};
use crate::variants::Variant;

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

/// All sessions of a guest.
pub struct Recorded {
    bucket: Bucket,
    tips: Vec<Snapshot>,
    failures: Vec<String>,
    files: BTreeMap<String, Bytes>,
}

/// Whether a typed handler's instance is kept from step to step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Instances {
    Kept,
    Fresh,
}

/// Runs all sessions of a guest under a variant.
pub fn record(guest: &Guest, bytes: &Bytes, variant: &Variant, instances: Instances) -> Recorded {
    let component = variant.sandbox().load_bytes(guest.name, bytes.clone()).unwrap();
    runtime().block_on(async {
        let environment = Arc::new(Counting(0.into()));
        let bucket = Bucket::new(Arc::new(InMemory::new()), TipLookup::Probe, environment);
        keep_component(&bucket, &component).await.unwrap();
        let (mut tips, mut failures) = (Vec::new(), Vec::new());
        for session in &guest.sessions {
            let id = start(&bucket, session).await;
            let ran = run_session(&bucket, id, &component, session, instances).await;
            if let Err(failure) = ran {
                failures.push(cause(&failure));
            }
            tips.push(bucket.tip(&id, None).await.unwrap());
        }
        let files = files(&bucket).await;
        Recorded { bucket, tips, failures, files }
    })
}

/// The innermost reason.
fn cause(failure: &dyn std::error::Error) -> String {
    failure.source().map_or_else(|| failure.to_string(), cause)
}

async fn start(bucket: &Bucket, session: &Session) -> SessionId {
    let metadata = BTreeMap::from([("team".to_owned(), "core".to_owned())]);
    let id = bucket.start(Some("agent".to_owned()), metadata).await.unwrap().session;
    for event in &session.events {
        let draft = Draft::push(event.clone(), Attributes::default());
        bucket.push(&id, None, &[draft]).await.unwrap();
    }
    id
}

async fn run_session(
    bucket: &Bucket,
    id: SessionId,
    component: &Component,
    session: &Session,
    instances: Instances,
) -> Result<(), StepError> {
    let handler = Handler::Component { component: component.clone(), args: session.args.clone() };
    let context = Context {
        bucket: bucket.clone(),
        manifest: bucket.manifest(&id).await.unwrap(),
        agent: "agent".to_owned(),
        handler,
        limits: Limits::default(),
        diagnostics: Arc::new(|_, _| {}),
        trace: None,
        fetcher: None,
        http: None,
        lifecycle: None,
        cache: None,
        keeper: (instances == Instances::Kept).then(Keeper::default),
    };
    let tip = bucket.tip(&id, None).await.unwrap();
    let options =
        pugmark_runtime::Options { max_steps: Some(session.max_steps), ..Default::default() };
    run(&context, tip, options, &mut Unwatched).await.map(|_| ())
}

struct Unwatched;

impl pugmark_runtime::Watch for Unwatched {}

/// Replays all sessions of a recording under a variant.
pub fn replayed(
    recorded: &Recorded,
    variant: &Variant,
    options: impl Fn() -> Options,
) -> Vec<Report> {
    let (sandbox, progress) = (variant.sandbox(), Arc::new(Progress::default()));
    runtime().block_on(async {
        let mut reports = Vec::new();
        for tip in &recorded.tips {
            let replay = replay(&recorded.bucket, tip, &sandbox, options(), &progress);
            reports.push(replay.await.unwrap());
        }
        reports
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn files(bucket: &Bucket) -> BTreeMap<String, Bytes> {
    let found: Vec<_> = bucket.store().list(None).try_collect().await.unwrap();
    let mut files = BTreeMap::new();
    for key in found.into_iter().map(|meta| meta.location) {
        let bytes = bucket.store().get(&key).await.unwrap().bytes().await.unwrap();
        files.insert(key.to_string(), bytes);
    }
    files
}

impl Recorded {
    /// What is not the same in another recording: a key, or how a session failed.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.failures != other.failures {
            return Some(format!("{:?}, not {:?}", self.failures, other.failures));
        }
        let mut keys: Vec<&String> = self.files.keys().chain(other.files.keys()).collect();
        keys.sort();
        keys.into_iter().find(|key| self.files.get(*key) != other.files.get(*key)).cloned()
    }

    /// How sessions failed.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// The roots of all logs in one digest.
    pub fn answers(&self) -> Digest {
        let roots: Vec<String> = self.tips.iter().map(|tip| tip.log.root().to_string()).collect();
        Digest::of(roots.join("\n").as_bytes())
    }
}

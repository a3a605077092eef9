use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use pugmark_log::object_store::memory::InMemory;
use pugmark_log::{Attributes, Draft, Environment, PAUSE_CONTENT_TYPE, Timestamp, TipLookup};

use super::*;

/// A clock that stands still, and counts for randomness.
struct Still(std::sync::atomic::AtomicU8);

impl Environment for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

fn bucket() -> Bucket {
    let environment = Arc::new(Still(0.into()));
    Bucket::new(Arc::new(InMemory::new()), TipLookup::Probe, environment)
}

fn pushed(body: &'static str) -> Draft {
    Draft::push(body, Attributes::default())
}

fn pause() -> Draft {
    let content_type = Some(PAUSE_CONTENT_TYPE.to_owned());
    Draft::push("", Attributes { content_type, ..Attributes::default() })
}

/// Position, event and body of all lines.
async fn shown(
    bucket: &Bucket,
    tip: &Snapshot,
    lifecycle: Option<Lifecycle>,
) -> Vec<(u64, &'static str, String)> {
    let log = StepLog::new(bucket.clone(), tip, None, lifecycle);
    let lines: Vec<LogLine> = log.lines().try_collect().await.unwrap();
    let shown = lines.iter().map(|line| {
        let body = line.entry.data().unwrap();
        (line.position, line.event, String::from_utf8(body.to_vec()).unwrap())
    });
    shown.collect()
}

fn line(position: u64, event: &'static str, body: &str) -> (u64, &'static str, String) {
    (position, event, body.to_owned())
}

#[tokio::test]
async fn a_start_line_stands_in_for_an_empty_log() {
    let bucket = bucket();
    let tip = bucket.start(None, BTreeMap::new()).await.unwrap();
    let start = line(0, "start", r#"{"kind":"start"}"#);
    assert_eq!(shown(&bucket, &tip, None).await, std::slice::from_ref(&start));
    let tip = bucket.push(&tip.session, None, &[pause()]).await.unwrap();
    assert_eq!(shown(&bucket, &tip, None).await, [start]);
    let tip = bucket.push(&tip.session, None, &[pushed("a")]).await.unwrap();
    assert_eq!(shown(&bucket, &tip, None).await, [line(1, "push", "a")]);
}

#[tokio::test]
async fn lifecycle_lines_tell_where_a_session_comes_from() {
    let bucket = bucket();
    let root = bucket.start(None, BTreeMap::new()).await.unwrap();
    let manifest = bucket.manifest(&root.session).await.unwrap();
    let lifecycle = Lifecycle::of(&bucket, &manifest).await.unwrap();
    let start = line(0, "start", r#"{"kind":"start"}"#);
    assert_eq!(shown(&bucket, &root, Some(lifecycle.clone())).await, std::slice::from_ref(&start));
    let tip = bucket.push(&root.session, None, &[pushed("a"), pause()]).await.unwrap();
    let a = line(0, "push", "a");
    assert_eq!(shown(&bucket, &tip, Some(lifecycle)).await, [start.clone(), a.clone()]);

    let child = bucket.fork(&tip, &[]).await.unwrap();
    let manifest = bucket.manifest(&child.session).await.unwrap();
    let lifecycle = Lifecycle::of(&bucket, &manifest).await.unwrap();
    let body = format!(r#"{{"kind":"fork","session":"{}","version":1}}"#, root.session);
    let fork = line(2, "fork", &body);
    let expected = [start.clone(), a.clone(), fork.clone()];
    assert_eq!(shown(&bucket, &child, Some(lifecycle.clone())).await, expected);
    let tip = bucket.push(&child.session, None, &[pause(), pushed("b")]).await.unwrap();
    let expected = [start, a.clone(), fork, line(3, "push", "b")];
    assert_eq!(shown(&bucket, &tip, Some(lifecycle)).await, expected);
    assert_eq!(shown(&bucket, &tip, None).await, [a, line(3, "push", "b")]);
}

#[tokio::test]
async fn the_body_of_a_made_up_line_can_be_read() {
    let bucket = bucket();
    let tip = bucket.start(None, BTreeMap::new()).await.unwrap();
    let log = StepLog::new(bucket, &tip, None, Some(Lifecycle { fork: None }));
    let lines: Vec<LogLine> = log.lines().try_collect().await.unwrap();
    let hash = lines[0].entry.hash();
    assert!(log.find(&hash).await.unwrap().is_none(), "it was not sent yet");
    log.sent(&lines[0]);
    let Some(Found::Whole(body)) = log.find(&hash).await.unwrap() else { panic!() };
    assert_eq!(body, &br#"{"kind":"start"}"#[..]);
}

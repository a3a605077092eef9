//! What a writer is told when no attempt gets through: that nothing was sent, or that it is unknown.

mod support;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use pugmark_log::{Error, NotSent, object_store};
use support::{Manual, block_on, bucket};

/// How an attempt to write ends.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    /// No connection.
    Unsent,
    /// No answer in time.
    TimedOut,
    /// The server fails.
    Failed,
    /// The server refuses for good.
    Refused,
}

/// A store whose writes end as planned, and go through when the plan is at its end.
#[derive(Debug)]
struct Planned {
    inner: InMemory,
    plan: Mutex<VecDeque<Attempt>>,
    attempts: Mutex<usize>,
}

fn error(attempt: Attempt) -> StoreError {
    let generic = |source| StoreError::Generic { store: "Planned", source };
    let io = |kind: io::ErrorKind| generic(Box::new(io::Error::from(kind)));
    match attempt {
        Attempt::Unsent => generic(Box::new(NotSent(io(io::ErrorKind::ConnectionRefused)))),
        Attempt::TimedOut => io(io::ErrorKind::TimedOut),
        Attempt::Failed => generic("status 500".into()),
        Attempt::Refused => {
            StoreError::PermissionDenied { path: String::new(), source: "status 403".into() }
        }
    }
}

#[async_trait]
impl ObjectStore for Planned {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        *self.attempts.lock().unwrap() += 1;
        let planned = self.plan.lock().unwrap().pop_front();
        match planned {
            Some(attempt) => Err(error(attempt)),
            None => self.inner.put_opts(location, payload, options).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Planned")
    }
}

/// Starts a session on such a store; returns what came of it, and how many writes were tried.
fn start(plan: &[Attempt]) -> (std::result::Result<(), Error>, usize) {
    let store = Arc::new(Planned {
        inner: InMemory::new(),
        plan: Mutex::new(plan.iter().copied().collect()),
        attempts: Mutex::new(0),
    });
    let bucket = bucket(store.clone(), Manual::new(1));
    let started = block_on(bucket.start(None, BTreeMap::new())).map(drop);
    let attempts = *store.attempts.lock().unwrap();
    (started, attempts)
}

#[test]
fn what_was_never_sent_is_not_unknown() {
    let (started, attempts) = start(&[Attempt::Unsent; 20]);
    assert!(matches!(started, Err(Error::Store { .. })), "{started:?}");
    assert_eq!(attempts, 8);
}

#[test]
fn a_server_that_comes_back_is_no_failure() {
    let (started, attempts) = start(&[Attempt::Unsent, Attempt::Failed, Attempt::Unsent]);
    assert!(started.is_ok());
    assert_eq!(attempts, 5, "three that failed, the manifest, version 0");
}

#[test]
fn one_open_attempt_makes_it_unknown() {
    for at in 0..8 {
        let mut plan = [Attempt::Unsent; 8];
        plan[at] = Attempt::Failed;
        let (started, attempts) = start(&plan);
        assert!(matches!(started, Err(Error::Unknown { .. })), "{at}: {started:?}");
        assert_eq!(attempts, 8);
    }
    let (started, _) = start(&[&[Attempt::Failed][..], &[Attempt::Refused; 8]].concat());
    assert!(matches!(started, Err(Error::Unknown { .. })), "{started:?}");
}

#[test]
fn a_refusal_is_final() {
    let (started, attempts) = start(&[Attempt::Unsent, Attempt::Refused]);
    assert!(matches!(started, Err(Error::Store { .. })), "{started:?}");
    assert_eq!(attempts, 2);
}

#[test]
fn time_outs_are_not_waited_for_again_and_again() {
    let (started, attempts) = start(&[Attempt::TimedOut; 8]);
    assert!(matches!(started, Err(Error::Unknown { .. })), "{started:?}");
    assert_eq!(attempts, 2);
}

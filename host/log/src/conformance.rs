//! The suite that a store must pass to hold a bucket.
//!
//! [`run`] puts a bucket through everything that the rest of the crate relies on, and
//! [`verify_chain`] checks what is stored of a session against itself. Use a bucket of its own: the
//! suite leaves sessions behind, some of them damaged on purpose.

mod append;
mod chain;
mod difference;
mod fork;
mod handlers;
mod log;
mod objects;
mod once;
mod outbox;
mod remove;
mod sessions;
mod trace;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::bucket::Bucket;
use crate::entry::{Attributes, Draft};
use crate::environment::Environment;
use crate::error::Error;
use crate::timestamp::Timestamp;

pub use chain::{Chain, verify_chain};

/// What a bucket did wrong.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Failure {
    #[error("{rule}: {reason}")]
    Broken { rule: String, reason: String },
    #[error("a request failed")]
    Request(#[from] Error),
    #[error("a request to the store failed")]
    Store(#[from] object_store::Error),
}

/// Puts a bucket through the whole suite.
///
/// The bucket's environment gives randomness and sleep; the suite has its own clock, which starts
/// at the environment's time and jumps ahead by hours.
///
/// # Errors
/// [`Failure::Broken`] for the first rule that does not hold; the others if a request fails that
/// should not.
pub async fn run(bucket: &Bucket) -> Result<(), Failure> {
    let clock = Arc::new(Clock::new(bucket.environment.clone()));
    let bucket = Bucket::new(
        bucket.store.clone(),
        bucket.tips.clone(),
        clock.clone() as Arc<dyn Environment>,
    )
    .with_grace(bucket.grace);
    let suite = Suite { bucket, clock };
    objects::check(&suite).await?;
    // Before the clock is far ahead of the store's own.
    remove::check(&suite).await?;
    sessions::check(&suite).await?;
    append::check(&suite).await?;
    log::check(&suite).await?;
    fork::check(&suite).await?;
    difference::check(&suite).await?;
    once::check(&suite).await?;
    outbox::check(&suite).await?;
    handlers::check(&suite).await?;
    trace::check(&suite).await
}

/// What the parts of the suite share.
struct Suite {
    bucket: Bucket,
    clock: Arc<Clock>,
}

/// An environment whose clock moves only when told to.
struct Clock {
    inner: Arc<dyn Environment>,
    now_ms: AtomicU64,
}

impl Clock {
    fn new(inner: Arc<dyn Environment>) -> Self {
        let now_ms = AtomicU64::new(inner.now().as_millis());
        Self { inner, now_ms }
    }

    fn advance(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Environment for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.inner.fill_random(bytes);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.inner.sleep(duration)
    }
}

/// Fails unless what was found is what the rule says.
fn same<T: PartialEq + Debug>(rule: &str, found: &T, expected: &T) -> Result<(), Failure> {
    let show = |value: &T| format!("{value:?}").chars().take(2000).collect::<String>();
    holds(rule, found == expected, || format!("found {}, not {}", show(found), show(expected)))
}

/// Fails with the reason unless the rule holds.
fn holds(rule: &str, holds: bool, reason: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Broken { rule: rule.to_owned(), reason: reason() }) }
}

/// Fails unless the result is an error of the kind that the rule asks for.
fn fails<T>(
    rule: &str,
    result: Result<T, Error>,
    expected: impl FnOnce(&Error) -> bool,
) -> Result<(), Failure> {
    match result {
        Ok(_) => holds(rule, false, || "it went well".to_owned()),
        Err(error) => holds(rule, expected(&error), || format!("another error: {error}")),
    }
}

/// A small push.
fn draft(text: impl AsRef<str>) -> Draft {
    Draft::push(Bytes::from(text.as_ref().to_owned()), Attributes::default())
}

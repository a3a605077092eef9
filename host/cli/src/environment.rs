//! The real time and randomness.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use pugmark_log::{Environment, Timestamp};

/// The machine's clock and random source.
pub struct System;

impl Environment for System {
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system has randomness");
    }

    /// Blocks the thread where there is no tokio runtime: commands on local files need none.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        if tokio::runtime::Handle::try_current().is_ok() {
            return tokio::time::sleep(duration).boxed();
        }
        async move { std::thread::sleep(duration) }.boxed()
    }
}

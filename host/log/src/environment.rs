//! Time and randomness, which callers own: programs hand in the real ones, simulations their own.

use std::time::Duration;

use futures::future::BoxFuture;

use crate::timestamp::Timestamp;

/// Where time and randomness come from.
pub trait Environment: Send + Sync + 'static {
    /// The wall-clock time.
    fn now(&self) -> Timestamp;

    /// Fills `bytes` with unpredictable ones.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Waits.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

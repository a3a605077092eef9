//! What the tests of this crate share: a clock and dice of their own, and a way to wait.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use pugmark_log::faults::Dice;
use pugmark_log::{Bucket, Environment, Timestamp, TipLookup, object_store};

/// 2026-01-31T12:00:00Z.
pub const NOON_MS: u64 = 1_769_860_800_000;

/// An environment whose clock stands still, whose dice follow from a seed, and that never waits.
pub struct Manual {
    now_ms: AtomicU64,
    dice: Mutex<Dice>,
}

impl Manual {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self { now_ms: AtomicU64::new(NOON_MS), dice: Mutex::new(Dice::new(seed)) })
    }

    pub fn advance(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Environment for Manual {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut dice = self.dice.lock().unwrap();
        bytes.fill_with(|| dice.bits().to_le_bytes()[0]);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.advance(u64::try_from(duration.as_millis()).unwrap());
        std::future::ready(()).boxed()
    }
}

/// A bucket on a store where look-ups are cheap.
pub fn bucket(store: Arc<dyn ObjectStore>, environment: Arc<Manual>) -> Bucket {
    Bucket::new(store, TipLookup::Probe, environment)
}

/// Runs a future to its end on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

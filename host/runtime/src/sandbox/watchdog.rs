//! Ends guests that run too long.
//!
//! One thread advances the engine's epoch while steps run, and sleeps while none does. Guests look
//! at the epoch themselves, so this works on any thread and needs no signal. A guest inside a host
//! function is ended when that returns.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wasmtime::Engine;

/// Milliseconds between two advances of the epoch.
const TICK_MS: u64 = 10;

/// Deadlines further away than this are none: 10,000 years.
const MAX_TICKS: u64 = 1 << 45;

/// How many advances of the epoch `limit_ms` milliseconds are. One more than they take, as the
/// first may come at once.
pub(super) fn ticks(limit_ms: u64) -> u64 {
    limit_ms.div_ceil(TICK_MS).min(MAX_TICKS) + 1
}

/// What `work` comes to, and how many milliseconds it took.
pub(super) fn timed<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let began = Instant::now();
    let done = work();
    (done, u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX))
}

/// The thread's handle. The thread ends when this is dropped.
pub(super) struct Watchdog {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    closed: bool,
}

/// A step that is running: the epoch advances while one of these lives.
pub(super) struct Running<'a> {
    shared: &'a Shared,
}

impl Watchdog {
    /// Starts the thread, which sleeps until a step runs.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub(super) fn start(engine: &Engine) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let engine = engine.clone();
        thread::Builder::new().name("pugmark-watchdog".to_owned()).spawn(move || {
            while of_thread.wait() {
                of_thread.advance(&engine);
            }
        })?;
        Ok(Self { shared })
    }

    /// Has the epoch advance until the answer is dropped.
    pub(super) fn watch(&self) -> Running<'_> {
        self.shared.lock().running += 1;
        self.shared.changed.notify_one();
        Running { shared: &self.shared }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.shared.lock().running -= 1;
    }
}

impl Shared {
    /// The state is counters alone, which no panic can leave half changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until a step runs; false when there will be none any more.
    fn wait(&self) -> bool {
        let state = self
            .changed
            .wait_while(self.lock(), |state| state.running == 0 && !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    /// Advances the epoch while steps run. Counts from the clock, not from the sleeps, which are
    /// longer on a busy machine.
    fn advance(&self, engine: &Engine) {
        let began = Instant::now();
        let mut advanced = 0;
        loop {
            thread::sleep(Duration::from_millis(TICK_MS));
            let due = began.elapsed().as_millis() / u128::from(TICK_MS);
            while advanced < due {
                engine.increment_epoch();
                advanced += 1;
            }
            let state = self.lock();
            if state.running == 0 || state.closed {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_never_shortened() {
        assert_eq!(ticks(0), 1);
        assert_eq!(ticks(200), 21);
        assert_eq!(ticks(201), 22);
        assert_eq!(ticks(60_000), 6_001);
        assert_eq!(ticks(u64::MAX), (1 << 45) + 1);
    }

    #[test]
    fn counts_the_steps_that_run() {
        let watchdog = Watchdog::start(&Engine::default()).unwrap();
        let first = watchdog.watch();
        let second = watchdog.watch();
        assert_eq!(watchdog.shared.lock().running, 2);
        drop(first);
        drop(second);
        assert_eq!(watchdog.shared.lock().running, 0);
    }
}

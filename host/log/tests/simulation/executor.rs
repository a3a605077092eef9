//! An executor on which everything follows from dice: one thread, no real time, and crashes.
//!
//! Which task goes on is drawn each time. The clock moves a little by chance, and jumps to the
//! earliest deadline when all tasks sleep.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::BoxFuture;
use pugmark_log::faults::Dice;

use crate::support::NOON_MS;

/// More turns than any schedule takes that comes to an end.
const MOST_TURNS: u64 = 2_000_000;

/// Virtual time in milliseconds since the epoch.
pub struct Clock(Mutex<Timers>);

struct Timers {
    now_ms: u64,
    waiting: Vec<(u64, Waker)>,
}

impl Clock {
    pub fn new() -> Self {
        Self(Mutex::new(Timers { now_ms: NOON_MS, waiting: Vec::new() }))
    }

    pub fn now_ms(&self) -> u64 {
        self.0.lock().unwrap().now_ms
    }

    pub fn advance(&self, ms: u64) {
        let mut timers = self.0.lock().unwrap();
        timers.now_ms += ms;
        let now_ms = timers.now_ms;
        timers.waiting.retain(|(deadline, waker)| {
            if *deadline <= now_ms {
                waker.wake_by_ref();
            }
            *deadline > now_ms
        });
    }

    /// Moves on to the earliest deadline; false if nobody waits.
    fn jump(&self) -> bool {
        let timers = self.0.lock().unwrap();
        let Some(earliest) = timers.waiting.iter().map(|(deadline, _)| *deadline).min() else {
            return false;
        };
        let ms = earliest - timers.now_ms;
        drop(timers);
        self.advance(ms);
        true
    }
}

/// Waits until a point in virtual time.
pub struct Sleep {
    pub clock: Arc<Clock>,
    pub deadline_ms: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut timers = self.clock.0.lock().unwrap();
        if timers.now_ms >= self.deadline_ms {
            return Poll::Ready(());
        }
        timers.waiting.push((self.deadline_ms, context.waker().clone()));
        Poll::Pending
    }
}

/// Lets others go first.
pub fn give_way() -> impl Future<Output = ()> + Send {
    let mut gave_way = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut gave_way, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// A task, and how to make another that takes its place when it crashes.
pub struct Task {
    future: Option<BoxFuture<'static, ()>>,
    make: Box<dyn Fn() -> BoxFuture<'static, ()>>,
    runnable: Arc<Runnable>,
}

struct Runnable(AtomicBool);

impl Wake for Runnable {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Task {
    pub fn new(make: impl Fn() -> BoxFuture<'static, ()> + 'static) -> Self {
        let runnable = Arc::new(Runnable(AtomicBool::new(true)));
        Self { future: Some(make()), make: Box::new(make), runnable }
    }

    fn is_runnable(&self) -> bool {
        self.future.is_some() && self.runnable.0.load(Ordering::Relaxed)
    }

    /// Drops what it did, at whatever operation it was, and starts anew.
    fn crash(&mut self) {
        self.future = None;
        self.future = Some((self.make)());
        self.runnable.0.store(true, Ordering::Relaxed);
    }

    fn poll(&mut self) {
        let Some(future) = &mut self.future else { return };
        self.runnable.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(self.runnable.clone());
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.future = None;
        }
    }
}

/// Runs all tasks to their end, crashing some of them up to `crashes` times on the way.
pub fn run(clock: &Clock, tasks: &mut [Task], mut dice: Dice, mut crashes: u64) {
    for _ in 0..MOST_TURNS {
        let runnable: Vec<usize> =
            (0..tasks.len()).filter(|task| tasks[*task].is_runnable()).collect();
        if runnable.is_empty() {
            if tasks.iter().all(|task| task.future.is_none()) {
                return;
            }
            assert!(clock.jump(), "tasks wait for nothing");
            continue;
        }
        if dice.per_mille(40) {
            clock.advance(dice.below(8));
        }
        let drawn = usize::try_from(dice.below(runnable.len() as u64)).unwrap();
        let task = &mut tasks[runnable[drawn]];
        if crashes > 0 && dice.per_mille(15) {
            crashes -= 1;
            task.crash();
        }
        task.poll();
    }
    panic!("the tasks come to no end");
}

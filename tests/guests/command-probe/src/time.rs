//! Probes of clocks and waiting: virtual time is to look the same in each run.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::raw;

/// What the probe saw, if it is one of these.
pub fn saw(probe: &str) -> Option<Value> {
    Some(match probe {
        "clocks" => clocks(),
        "busy-wait" => busy_wait(),
        "sleep" => sleep(Duration::from_secs(1)),
        "sleep-long" => sleep(Duration::from_secs(3_600)),
        "poll" => poll(),
        "yield" => (0..3).map(|_| json!(yielded())).collect(),
        _ => return None,
    })
}

/// Every clock by its number, twice, and what they claim to resolve.
fn clocks() -> Value {
    (0..6)
        .map(|id| {
            let mut resolution = 0;
            // SAFETY: the pointer is valid for the call.
            let errno = unsafe { raw::clock_res_get(id, &mut resolution) };
            json!({"resolution": [errno, resolution], "time": [raw::clock(id), raw::clock(id)]})
        })
        .collect()
}

/// How many looks at each clock it takes until 10 ms have passed on it.
fn busy_wait() -> Value {
    let wait = Duration::from_millis(10);
    let (start, mut monotonic) = (Instant::now(), 0_u64);
    while start.elapsed() < wait {
        monotonic += 1;
    }
    let (start, mut wall) = (SystemTime::now(), 0_u64);
    while start.elapsed().is_ok_and(|elapsed| elapsed < wait) {
        wall += 1;
    }
    json!({"monotonic": monotonic, "wall": wall})
}

/// What both clocks say a sleep took, and the wall clock before it.
fn sleep(duration: Duration) -> Value {
    let (wall, monotonic) = (SystemTime::now(), Instant::now());
    thread::sleep(duration);
    json!({
        "before": wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos()).to_string(),
        "monotonic": monotonic.elapsed().as_nanos().to_string(),
        "wall": wall.elapsed().map_or(0, |elapsed| elapsed.as_nanos()).to_string(),
    })
}

/// Which of several waits happened: 5 s, 1 s, and standard input with nothing left to read.
fn poll() -> Value {
    let clock = |userdata, ns| [userdata, 0, 1, ns, 0, 0];
    let stdin = |userdata| [userdata, 1, 0, 0, 0, 0];
    let rounds = [
        vec![clock(5, 5_000_000_000), clock(1, 1_000_000_000)],
        vec![clock(1, 1_000_000_000), clock(2, 1_000_000_000)],
        vec![clock(5, 5_000_000_000), stdin(9)],
        vec![clock(0, 0), stdin(9)],
        Vec::new(),
    ];
    rounds.iter().map(|subscriptions| happened(subscriptions)).collect()
}

fn happened(subscriptions: &[[u64; 6]]) -> Value {
    let mut events = vec![[0; 4]; subscriptions.len()];
    let (start, mut count) = (raw::clock(1).1, 0);
    // SAFETY: there is room for one event a subscription.
    let errno = unsafe {
        let (from, to) = (subscriptions.as_ptr(), events.as_mut_ptr());
        raw::poll_oneoff(from, to, subscriptions.len(), &mut count)
    };
    let names: Vec<u64> = events.iter().take(count).map(|event| event[0]).collect();
    json!({"errno": errno, "happened": names, "took": raw::clock(1).1 - start})
}

fn yielded() -> (i32, u64) {
    // SAFETY: takes no pointers.
    let errno = unsafe { raw::sched_yield() };
    (errno, raw::clock(1).1)
}

//! (k) A whole step of a loop that keeps its instance, as the log grows; and one that does not.

use std::time::{Duration, Instant};

use pugmark_log::Snapshot;
use pugmark_runtime::{Committed, Context, Keeper, Options, Watch, run};

use crate::support::{Row, Setup, bucket, counter, median, runtime, session_of};

const SIZES: [u64; 3] = [100, 10_000, 100_000];
/// How often each size is measured, in turn with the others, and steps that are measured each time.
const ROUNDS: usize = 9;
const STEPS: u64 = 256;
/// Steps that are measured where each folds a long log anew.
const COLD_STEPS: u64 = 8;

/// A session that grows, and the times of its steps.
struct Loop {
    context: Context,
    tip: Option<Snapshot>,
    _folder: tempfile::TempDir,
    times: Vec<Duration>,
}

/// Notes when a step began, and how long it took.
#[derive(Default)]
struct Clock {
    began: Option<Instant>,
    times: Vec<Duration>,
}

impl Watch for Clock {
    fn begins(&mut self, _tip: &Snapshot) {
        self.began = Some(Instant::now());
    }

    fn committed(&mut self, _committed: &Committed) {
        self.times.extend(self.began.take().map(|began| began.elapsed()));
    }
}

/// How a loop runs.
#[derive(Clone, Copy)]
struct Manner {
    warm: bool,
    fsync: bool,
}

pub fn measure(setup: &Setup) -> Vec<Row> {
    let warm = steps(setup, Manner { warm: true, fsync: true });
    let unsynced = steps(setup, Manner { warm: true, fsync: false });
    let cold = steps(setup, Manner { warm: false, fsync: true });
    let mut rows = Vec::new();
    for (index, size) in SIZES.iter().enumerate().skip(1) {
        let what = format!("warm step at {size} events, against at 100 (median of {ROUNDS} means)");
        let aim = if *size == 100_000 { "≤ 1.3" } else { "flat" };
        rows.push(Row::times(&what, warm[index], warm[0], aim));
        let what = format!("{what}, without fsync");
        rows.push(Row::times(what, unsynced[index], unsynced[0], aim));
    }
    for (index, size) in SIZES.iter().enumerate() {
        let what = format!("step at {size} events, cold against warm");
        rows.push(Row::times(what, cold[index], warm[index], "grows with the fold"));
    }
    rows
}

/// What a step takes at each size.
fn steps(setup: &Setup, manner: Manner) -> Vec<Duration> {
    let mut loops: Vec<Loop> = SIZES.iter().map(|&size| prepared(setup, size, manner)).collect();
    for _ in 0..ROUNDS {
        for of_size in &mut loops {
            of_size.go_on(if manner.warm { STEPS } else { COLD_STEPS });
        }
    }
    loops.into_iter().map(|of_size| median(of_size.times)).collect()
}

fn prepared(setup: &Setup, size: u64, manner: Manner) -> Loop {
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let filled = runtime().block_on(session_of(&bucket(folder.path(), false), size));
    let bucket = bucket(folder.path(), manner.fsync);
    let context = runtime().block_on(counter(setup, bucket, &filled));
    let context = Context { keeper: manner.warm.then(Keeper::default), ..context };
    Loop { context, tip: Some(filled), _folder: folder, times: Vec::new() }
}

impl Loop {
    /// Measures some more steps.
    fn go_on(&mut self, steps: u64) {
        let Some(tip) = self.tip.take() else { return };
        let mut clock = Clock::default();
        // The first one folds what there is: it is not counted.
        let options = Options { once: false, max_steps: Some(steps + 1) };
        let finished = runtime().block_on(run(&self.context, tip, options, &mut clock));
        self.tip = Some(finished.expect("the counter counts").tip);
        let counted = &clock.times[1..];
        let sum: Duration = counted.iter().sum();
        self.times.push(sum / u32::try_from(counted.len()).expect("few"));
    }
}

//! (b) What a step costs as the log grows: the store's side, bytes, and the fold.

use std::time::Duration;

use pugmark_log::object_store::ObjectStoreExt as _;
use pugmark_log::{Step, StepEnd, layout};
use pugmark_runtime::{Options, run};

use crate::support::{Quiet, Row, Setup, bucket, counter, event, runtime, session_of, show, timed};

const SIZES: [u64; 3] = [100, 10_000, 100_000];
const STEPS: u64 = 1024;
/// Whole steps measured where each folds a long log anew.
const FOLDS: u64 = 32;

struct Cost {
    commit: Duration,
    bytes: u64,
    whole: Duration,
}

pub fn measure(setup: &Setup) -> Vec<Row> {
    let costs: Vec<Cost> = SIZES.iter().map(|&size| cost(setup, size)).collect();
    let least = &costs[0];
    let mut rows = Vec::new();
    for (size, cost) in SIZES.iter().zip(&costs).skip(1) {
        let what = format!("commit of a step at {size} events, against at 100 ({STEPS} each)");
        rows.push(Row::times(what, cost.commit, least.commit, "flat"));
        #[expect(clippy::cast_precision_loss, reason = "a ratio of two decimals")]
        rows.push(Row {
            what: format!("bytes written by a step at {size} events, against at 100"),
            ours: format!("{} B", cost.bytes),
            against: format!("{} B", least.bytes),
            ratio: Some(cost.bytes as f64 / least.bytes as f64),
            aim: "≤ 1.2",
        });
        let fold = cost.whole.saturating_sub(cost.commit);
        rows.push(Row {
            what: format!("whole step at {size} events, cold, of which the fold ({FOLDS} each)"),
            ours: show(cost.whole),
            against: show(fold),
            ratio: None,
            aim: "grows with the fold",
        });
    }
    rows
}

fn cost(setup: &Setup, size: u64) -> Cost {
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let runtime = runtime();
    let filled = runtime.block_on(session_of(&bucket(folder.path(), false), size));
    let bucket = bucket(folder.path(), true);
    let objects = folder.path().join("objects");
    let before = folder_bytes(&objects);
    let first = filled.version + 1;
    let (took, tip) = timed(|| {
        runtime.block_on(async {
            let mut tip = filled;
            for number in 0..STEPS {
                let outputs = vec![event(size + number)];
                let step = Step {
                    basis: tip,
                    outputs,
                    outbox: Vec::new(),
                    end: StepEnd::Continue,
                    record: None,
                };
                tip = bucket.commit_step(&step).await.expect("committed");
            }
            tip
        })
    });
    let snapshots: u64 = runtime.block_on(async {
        let mut sum = 0;
        for version in first..=tip.version {
            let key = layout::snapshot(&tip.session, version);
            sum += bucket.store().head(&key).await.expect("written").size;
        }
        sum
    });
    let bytes = (snapshots + folder_bytes(&objects) - before) / STEPS;
    let context = runtime.block_on(counter(setup, bucket, &tip));
    let options = Options { once: false, max_steps: Some(FOLDS) };
    let (whole, finished) = timed(|| runtime.block_on(run(&context, tip, options, &mut Quiet)));
    finished.expect("the counter counts");
    Cost {
        commit: took / u32::try_from(STEPS).expect("few"),
        bytes,
        whole: whole / u32::try_from(FOLDS).expect("few"),
    }
}

fn folder_bytes(folder: &std::path::Path) -> u64 {
    let Ok(files) = std::fs::read_dir(folder) else { return 0 };
    files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum()
}

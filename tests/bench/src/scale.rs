//! (h) Whole processes on large buckets: many sessions, many forks of one, a long session.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use pugmark_log::{Bucket, Snapshot};

use crate::support::{Row, Setup, bucket, event, median, runtime, session_of, show, timed};

const RUNS: usize = 15;

/// A home with a bucket.
struct Place {
    program: PathBuf,
    folder: tempfile::TempDir,
}

pub fn measure(setup: &Setup) -> Vec<Row> {
    let mut rows = Vec::new();
    let (few, many) = (sessions(setup, 100), sessions(setup, 10_000));
    for arguments in [&["sessions"][..], &["sessions", "-n", "20"], &["switch", "0"]] {
        let what = format!("{} at 10000 sessions, against at 100", arguments.join(" "));
        rows.push(compare(&what, &many, &few, arguments));
    }
    let (few, many) = (forks(setup, 10), forks(setup, 1000));
    rows.push(compare("log at 1000 forks of one session, against at 10", &many, &few, &["log"]));
    let (short, long) = (events(setup, 1000), events(setup, 100_000));
    for arguments in [&["objects", "-n", "20"][..], &["log", "-n", "20"], &["context"]] {
        let what = format!("{} at 100000 events, against at 1000", arguments.join(" "));
        rows.push(compare(&what, &long, &short, arguments));
    }
    rows
}

fn compare(what: &str, large: &Place, small: &Place, arguments: &[&str]) -> Row {
    let (mut at_large, mut at_small) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        at_large.push(timed(|| large.run(arguments)).0);
        at_small.push(timed(|| small.run(arguments)).0);
    }
    let (large, small) = (median(at_large), median(at_small));
    Row {
        what: format!("{what} (whole process, median of {RUNS})"),
        ours: show(large),
        against: show(small),
        ratio: Some(large.as_secs_f64() / small.as_secs_f64()),
        aim: "quick",
    }
}

impl Place {
    fn run(&self, arguments: &[&str]) {
        let mut command = Command::new(&self.program);
        command
            .args(["-b", &self.folder.path().join("bucket").display().to_string()])
            .args(arguments);
        command
            .env("HOME", self.folder.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("PUGMARK_BUCKET");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // `switch 0` is ambiguous on purpose: it looks at every session.
        command.status().expect("started");
    }
}

/// A bucket that `fill` fills, whose last session is the current one.
fn place(setup: &Setup, fill: impl AsyncFnOnce(&Bucket) -> Snapshot) -> Place {
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let path = folder.path().join("bucket");
    std::fs::create_dir_all(&path).expect("made");
    let tip = runtime().block_on(fill(&bucket(&path, false)));
    let place = Place { program: setup.program.clone(), folder };
    place.run(&["switch", &tip.session.to_string()]);
    place
}

fn sessions(setup: &Setup, count: u64) -> Place {
    place(setup, async |bucket| {
        let mut tip = bucket.start(None, [].into()).await.expect("started");
        for _ in 1..count {
            tip = bucket.start(None, [].into()).await.expect("started");
        }
        tip
    })
}

fn forks(setup: &Setup, count: u64) -> Place {
    place(setup, async |bucket| {
        let root = session_of(bucket, 100).await;
        for number in 0..count {
            bucket.fork(&root, &[event(number)]).await.expect("forked");
        }
        root
    })
}

fn events(setup: &Setup, count: u64) -> Place {
    place(setup, async |bucket| session_of(bucket, count).await)
}

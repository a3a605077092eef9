//! (j) Bundling and unbundling, against tar and zstd on the same files. Whole processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pugmark_log::{Attributes, Draft};

use crate::support::{Row, Setup, bucket, event, median, runtime, settle, timed};

/// Versions of one event each, the many small files of a session in use.
const EVENTS: u64 = 10_000;
/// Bodies of 32 MiB.
const BODIES: u64 = 8;
const RUNS: usize = 5;
const AIM: &str = "≤ 2.0";

pub fn measure(setup: &Setup) -> Vec<Row> {
    let small: Vec<Draft> = (0..EVENTS).map(event).collect();
    let large: Vec<Draft> = (0..BODIES).map(body).collect();
    let sets = [(format!("{EVENTS} versions"), small), (format!("{BODIES} × 32 MiB"), large)];
    sets.iter().flat_map(|(what, drafts)| compare(setup, what, drafts)).collect()
}

fn compare(setup: &Setup, what: &str, drafts: &[Draft]) -> [Row; 2] {
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let source = folder.path().join("source");
    fs::create_dir_all(&source).expect("made");
    let session = runtime().block_on(async {
        let bucket = bucket(&source, false);
        let mut tip = bucket.start(None, [].into()).await.expect("started");
        for draft in drafts {
            let one = std::slice::from_ref(draft);
            tip = bucket.push(&tip.session, Some(tip.version), one).await.expect("pushed");
        }
        tip.session.to_string()
    });
    let place = Place { setup, home: folder.path() };
    let (bundle, archive) = (folder.path().join("run.pug"), folder.path().join("run.tar.zst"));
    let make = || place.pugmark(&source, &["bundle", "-o", text(&bundle), &session]);
    let pack = || tar(&["--zstd", "-cf", text(&archive), "-C", text(&source), "."]);
    // The first round warms the caches of both.
    let (ours, theirs) = in_turn(make, pack);
    let made = Row::times(format!("bundle {what}, against tar --zstd"), ours, theirs, AIM);
    let unmake = || {
        let target = place.target();
        place.pugmark(&target, &["unbundle", text(&bundle)])
    };
    let unpack = || {
        let target = place.target();
        tar(&["--zstd", "-xf", text(&archive), "-C", text(&target)])
    };
    let (ours, theirs) = in_turn(unmake, unpack);
    [made, Row::times(format!("unbundle {what}, against tar --zstd"), ours, theirs, AIM)]
}

/// Bytes that compress by about a half, as JSON and text do at worst.
fn body(number: u64) -> Draft {
    let mut state = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bytes = Vec::with_capacity(32 << 20);
    while bytes.len() < 32 << 20 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(format!("{state:016x}").as_bytes());
    }
    Draft::push(bytes, Attributes::default())
}

/// The middle times of two things done in turn.
fn in_turn(ours: impl Fn() -> Duration, theirs: impl Fn() -> Duration) -> (Duration, Duration) {
    let quiet = |run: &dyn Fn() -> Duration| {
        settle();
        run()
    };
    let times: Vec<_> = (0..=RUNS).map(|_| (quiet(&ours), quiet(&theirs))).skip(1).collect();
    let (ours, theirs) = times.into_iter().unzip();
    (median(ours), median(theirs))
}

/// Where the commands run.
struct Place<'a> {
    setup: &'a Setup,
    home: &'a Path,
}

impl Place<'_> {
    fn pugmark(&self, bucket: &Path, arguments: &[&str]) -> Duration {
        let mut command = Command::new(&self.setup.program);
        command.args(["-b", text(bucket)]).args(arguments).env("HOME", self.home);
        command.env_remove("XDG_CONFIG_HOME").env_remove("PUGMARK_BUCKET");
        took(&mut command)
    }

    /// A new folder. The one before stays until the end: ext4 is slow to give out what was in use
    /// a moment ago.
    fn target(&self) -> PathBuf {
        tempfile::tempdir_in(self.home).expect("a folder can be made").keep()
    }
}

fn tar(arguments: &[&str]) -> Duration {
    took(Command::new("tar").args(arguments))
}

fn took(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (time, status) = timed(|| command.status().expect("started"));
    assert!(status.success(), "{command:?}");
    time
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the benchmark's folders have plain names")
}

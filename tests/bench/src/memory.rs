//! (f) Peak memory of whole processes on a session of 100,000 events.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{Row, Setup, bucket, runtime, session_of};

const EVENTS: u64 = 100_000;

pub fn measure(setup: &Setup) -> Vec<Row> {
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let path = folder.path().join("bucket");
    fs::create_dir_all(&path).expect("made");
    let filled = runtime().block_on(session_of(&bucket(&path, false), EVENTS));
    let session = filled.session.to_string();
    let event = folder.path().join("event.json");
    fs::write(&event, b"{\"kind\":\"event\"}").expect("written");
    let counter = setup.guests.join("counter.wasm").display().to_string();
    let commands: [(&str, Vec<String>, &str); 3] = [
        (
            "push",
            vec!["push".into(), "-s".into(), session.clone(), event.display().to_string()],
            "≤ 64 MiB",
        ),
        (
            "log -n 20",
            vec!["log".into(), "-n".into(), "20".into(), "-s".into(), session.clone()],
            "≤ 64 MiB",
        ),
        (
            "run --once, typed",
            vec!["run".into(), "--once".into(), "-s".into(), session.clone(), "--".into(), counter],
            "≤ 150 MiB",
        ),
    ];
    let mut rows = Vec::new();
    for (what, arguments, aim) in commands {
        let run = || {
            let mut command = Command::new(&setup.program);
            command.args(["-b", &path.display().to_string()]).args(&arguments);
            command.env("HOME", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
            peak_kib(&mut command)
        };
        // The first run of a component compiles it, in a child of its own.
        let peak = run().max(run());
        #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
        let mib = peak as f64 / 1024.0;
        rows.push(Row {
            what: format!("peak memory of {what} at {EVENTS} events"),
            ours: format!("{mib:.1} MiB"),
            against: "-".to_owned(),
            ratio: None,
            aim,
        });
    }
    rows
}

/// The highest resident size that a process was seen at, in KiB: the kernel keeps the peak, and it
/// is read until the process ends.
fn peak_kib(command: &mut Command) -> u64 {
    let mut child = command.stdin(Stdio::null()).spawn().expect("started");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("waited").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        thread::sleep(Duration::from_micros(200));
    }
    assert!(child.wait().expect("waited").success(), "{command:?}");
    peak
}

//! (g) From the start of the process to its first step, with a large component in the cache.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{Row, Setup, median, show, timed};

const RUNS: usize = 40;

pub fn measure(setup: &Setup) -> Vec<Row> {
    let Some(component) = &setup.large_component else {
        return vec![Row {
            what: "process start to first step, large component".to_owned(),
            ours: "left out: --large-component names none".to_owned(),
            against: "-".to_owned(),
            ratio: None,
            aim: "≤ 30 ms",
        }];
    };
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&setup.program);
        command.args(arguments).env("HOME", folder.path());
        command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_CACHE_HOME");
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(quiet.status().expect("started").success(), "{arguments:?}");
    };
    let path = component.display().to_string();
    run(&["start"]);
    let (first, ()) = timed(|| run(&["run", "--once", "--", &path]));
    let times = (0..RUNS).map(|_| timed(|| run(&["run", "--once", "--", &path])).0).collect();
    let size = fs::metadata(component).expect("there").len() / 1_000_000;
    vec![Row {
        what: format!(
            "process start to the end of its first step, cached component of {size} MB (median of {RUNS}; against: compiling it first)"
        ),
        ours: show(median(times)),
        against: show(first),
        ratio: None,
        aim: "≤ 30 ms",
    }]
}

//! (d) Whole processes: `push`, `cat` and `log -n 20`, against git's on as many commits.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Row, Setup, bucket, event, median, runtime, timed};

const COMMITS: u64 = 1000;
const RUNS: usize = 60;

pub fn measure(setup: &Setup) -> Vec<Row> {
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let home = folder.path().join("home");
    let repository = folder.path().join("repository");
    std::fs::create_dir_all(&home).expect("made");
    let session = fill_session(&folder.path().join("bucket"));
    fill_repository(&repository);
    let bucket = folder.path().join("bucket");
    let ours = |arguments: &[&str]| {
        let mut command = Command::new(&setup.program);
        command.args(["-b", &bucket.display().to_string()]).args(arguments);
        hermetic(command, &home)
    };
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&repository).args(arguments);
        hermetic(command, &home)
    };
    run(&mut ours(&["switch", &session]), b"");
    let objects = output(&mut ours(&["objects"]));
    let hash = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let newest = objects.lines().last().map(hash).unwrap_or_default();
    let oldest = objects.lines().next().map(hash).unwrap_or_default();
    let body = event(7).body;
    let pairs = [
        (
            "push, against git commit",
            vec!["push"],
            vec!["commit", "-q", "--allow-empty", "-m", "x"],
        ),
        (
            "cat of the newest event, against git cat-file",
            vec!["cat", &newest],
            vec!["cat-file", "-p", "HEAD:file"],
        ),
        (
            "cat of the oldest event, against git cat-file",
            vec!["cat", &oldest],
            vec!["cat-file", "-p", "HEAD~999:file"],
        ),
        ("log -n 20, against git log -n 20", vec!["log", "-n", "20"], vec!["log", "-n", "20"]),
    ];
    let mut rows = Vec::new();
    for (what, our_arguments, git_arguments) in pairs {
        let (mut our_times, mut git_times) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            our_times.push(timed(|| run(&mut ours(&our_arguments), &body)).0);
            git_times.push(timed(|| run(&mut git(&git_arguments), b"")).0);
        }
        let what = format!("{what} (whole process, {COMMITS} commits, median of {RUNS})");
        rows.push(Row::times(what, median(our_times), median(git_times), "≤ 2.0"));
    }
    rows
}

fn hermetic(mut command: Command, home: &Path) -> Command {
    for name in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "PUGMARK_BUCKET"] {
        command.env_remove(name);
    }
    for (name, value) in [("GIT_AUTHOR_NAME", "a"), ("GIT_COMMITTER_NAME", "a")] {
        command.env(name, value);
    }
    command.env("GIT_AUTHOR_EMAIL", "a@b").env("GIT_COMMITTER_EMAIL", "a@b");
    command.env("HOME", home).stdout(Stdio::null());
    command
}

fn run(command: &mut Command, input: &[u8]) {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("started");
    // A command that reads nothing may be gone by now.
    let _ = child.stdin.take().expect("piped").write_all(input);
    assert!(child.wait().expect("waited").success(), "{command:?}");
}

fn output(command: &mut Command) -> String {
    let output = command.stdout(Stdio::piped()).output().expect("started");
    String::from_utf8(output.stdout).expect("text")
}

fn fill_session(folder: &Path) -> String {
    std::fs::create_dir_all(folder).expect("made");
    let bucket = bucket(folder, false);
    runtime().block_on(async {
        let mut tip = bucket.start(None, [].into()).await.expect("started");
        for number in 0..COMMITS {
            let hint = Some(tip.version);
            tip = bucket.push(&tip.session, hint, &[event(number)]).await.expect("pushed");
        }
        tip.session.to_string()
    })
}

fn fill_repository(folder: &Path) {
    std::fs::create_dir_all(folder).expect("made");
    let mut init = Command::new("git");
    run(init.arg("-C").arg(folder).args(["init", "-q", "-b", "main"]), b"");
    let mut stream = String::new();
    for number in 0..COMMITS {
        let body = String::from_utf8(event(number).body.to_vec()).expect("text");
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter a <a@b> {} +0000\ndata 1\nx\nM 100644 inline file\ndata {}\n{body}\n",
            1_700_000_000 + number,
            body.len(),
        );
    }
    let mut import = Command::new("git");
    run(import.arg("-C").arg(folder).args(["fast-import", "--quiet"]), stream.as_bytes());
    let mut reset = Command::new("git");
    run(reset.arg("-C").arg(folder).args(["reset", "-q", "--hard"]), b"");
}

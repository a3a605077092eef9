//! Running the programs of languages' toolchains.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::source::Source;
use crate::error::Error;
use crate::output::{Mode, mode};

/// The lines of a tool's standard error that an error ends with.
const LINES: usize = 20;

/// How long the code of a handler may take that a build runs: what its modules do as they are loaded.
pub const LOADING: Duration = Duration::from_mins(5);

/// How often a tool is looked at that has a time limit.
const POLL: Duration = Duration::from_millis(20);

/// Runs a tool to its end, and returns its standard output. What it says on standard error goes to
/// ours as it comes; with `--json` or `-q` it is kept, for the error if there is one.
///
/// # Errors
/// [`Error::Build`] if it is not there, with `missing` as the way out, or fails.
pub fn run(source: &Source, command: &mut Command, missing: &str) -> Result<Vec<u8>, Error> {
    let Mode { json, quiet, .. } = mode();
    let kept = json || quiet;
    let stderr = if kept { Stdio::piped() } else { Stdio::inherit() };
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn();
    let ended = child.and_then(std::process::Child::wait_with_output).map_err(|error| {
        failed(source, format!("`{program}` cannot be run: {error}"), Some(missing.to_owned()))
    })?;
    if ended.status.success() {
        return Ok(ended.stdout);
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let lines = said.lines().collect::<Vec<_>>();
    let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
    let reason = match end.trim_end() {
        "" => format!("`{program}` failed ({})", ended.status),
        end => format!("`{program}` failed ({}): {end}", ended.status),
    };
    Err(failed(source, reason, None))
}

/// Waits for a tool; `None` if it was ended because it took longer than `limit`.
///
/// # Errors
/// If the system has lost it.
pub fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// Whether a program is in one of the folders of `PATH`.
pub fn is_there(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// A build that failed.
pub fn failed(source: &Source, reason: impl Into<String>, hint: Option<String>) -> Error {
    Error::Build { path: source.path.display().to_string(), reason: reason.into(), hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_for_ever_is_ended() {
        let mut loops = Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(wait(&mut loops, Duration::from_millis(50)).unwrap(), None);
        let mut ends = Command::new("true").spawn().unwrap();
        assert!(wait(&mut ends, LOADING).unwrap().unwrap().success());
    }
}

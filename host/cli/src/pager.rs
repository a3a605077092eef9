//! The pager: what long output goes through on a terminal.
//!
//! It takes the place of standard output, so that commands need not know of it.

use std::env;
use std::fs::OpenOptions;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::signal::unix::{SignalKind, signal};

use crate::output;

/// Shows a screenful without asking, passes colour on, and leaves the text on the screen.
const DEFAULT: &str = "less -FRX";

static WANTED: AtomicBool = AtomicBool::new(false);
static RUNNING: Mutex<Option<Child>> = Mutex::new(None);

/// Says that what this command prints may be long. The pager starts with the first byte of it.
pub fn want() {
    WANTED.store(true, Ordering::Relaxed);
}

/// Starts the pager, if it is wanted and standard output is a terminal.
pub fn start_if_wanted() {
    if !WANTED.swap(false, Ordering::Relaxed) {
        return;
    }
    let mode = output::mode();
    if !output::on_terminal() || mode.json || mode.no_pager {
        return;
    }
    let chosen = ["PUGMARK_PAGER", "PAGER"].iter().find_map(env::var_os);
    let chosen = chosen.map_or(DEFAULT.into(), |text| text.to_string_lossy().into_owned());
    if let Some(child) = start(&chosen) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
    }
}

/// Waits until the reader has left the pager, if there is one.
pub fn finish() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut child) = running else { return };
    // The pager reads to the end only once nothing holds its input open any more.
    if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
    let _ = child.wait();
}

/// Starts a pager in the place of standard output. `None` where there is none: the text then goes
/// to the terminal itself.
fn start(command: &str) -> Option<Child> {
    let argv = shell_words::split(command).ok()?;
    let (program, arguments) = argv.split_first()?;
    if program == "cat" {
        return None;
    }
    let mut pager = Command::new(program);
    pager.args(arguments).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    let mut child = pager.spawn().ok()?;
    let input = child.stdin.take()?;
    rustix::stdio::dup2_stdout(&input).ok()?;
    leave_interrupts_to_the_pager();
    Some(child)
}

/// Ctrl-C is a command to the pager. If it ended this process, the shell would take the terminal
/// from under the pager.
fn leave_interrupts_to_the_pager() {
    if tokio::runtime::Handle::try_current().is_ok() {
        let _ = signal(SignalKind::interrupt());
        return;
    }
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() {
        let _entered = runtime.enter();
        let _ = signal(SignalKind::interrupt());
    }
}

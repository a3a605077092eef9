//! How far a replay is: one line on a terminal's standard error, gone when it is done.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use pugmark_runtime::replay::Progress;

use crate::output;

/// What is done sooner is not worth a line.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the line is drawn anew.
const INTERVAL: Duration = Duration::from_millis(100);
/// Characters of the bar.
const WIDTH: usize = 24;

/// The line, until it is dropped.
pub struct Meter(Option<(mpsc::Sender<()>, JoinHandle<()>)>);

impl Meter {
    /// Begins to show the line; shows nothing where nobody looks.
    pub fn new(progress: &Arc<Progress>) -> Self {
        let mode = output::mode();
        let shown = !mode.quiet && !mode.json && io::stderr().is_terminal();
        Self(shown.then(|| {
            let (ended, end) = mpsc::channel();
            let progress = Arc::clone(progress);
            (ended, std::thread::spawn(move || draw(&progress, &end)))
        }))
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.0.take() {
            drop(ended);
            let _ = thread.join();
        }
    }
}

fn draw(progress: &Progress, end: &mpsc::Receiver<()>) {
    let mut pause = PATIENCE;
    while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let found = progress.found.load(Ordering::Relaxed);
        let done = progress.done.load(Ordering::Relaxed);
        let _ = write!(io::stderr(), "\r\x1b[K{}", line(done, found));
        let _ = io::stderr().flush();
        pause = INTERVAL;
    }
    if pause == INTERVAL {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

fn line(done: u64, found: u64) -> String {
    let share = done.min(found) * WIDTH as u64 / found.max(1);
    let filled = usize::try_from(share).unwrap_or(WIDTH);
    let bar = format!("{}{}", "=".repeat(filled), " ".repeat(WIDTH - filled));
    format!("replaying [{bar}] {done} of {found} steps")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_far_it_is() {
        assert_eq!(line(0, 0), format!("replaying [{}] 0 of 0 steps", " ".repeat(24)));
        assert_eq!(
            line(10, 20),
            format!("replaying [{}{}] 10 of 20 steps", "=".repeat(12), " ".repeat(12))
        );
    }
}

//! How far a long transfer is: one line on a terminal's standard error, gone when it is done.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::output::{self, human_size};

/// Fewer bytes than this are not worth a line.
const WORTH_SHOWING: u64 = 8 * 1024 * 1024;
/// What is done sooner is not worth one either.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the line is drawn anew.
const INTERVAL: Duration = Duration::from_millis(100);

/// A transfer that is under way. The line is wiped when it is dropped.
pub struct Progress {
    done: Arc<AtomicU64>,
    drawer: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins to show a transfer of `total` bytes, called `label`; shows nothing where nobody
    /// looks.
    pub fn new(label: &str, total: u64) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        let mode = output::mode();
        let shown =
            total >= WORTH_SHOWING && !mode.quiet && !mode.json && io::stderr().is_terminal();
        let drawer = shown.then(|| {
            let (ended, end) = mpsc::channel();
            let (label, counter) = (label.to_owned(), done.clone());
            let thread = std::thread::spawn(move || draw(&label, total, &counter, &end));
            (ended, thread)
        });
        Self { done, drawer }
    }

    /// Counts bytes that have been transferred.
    pub fn add(&self, bytes: usize) {
        self.done.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.drawer.take() {
            drop(ended);
            let _ = thread.join();
        }
    }
}

fn draw(label: &str, total: u64, done: &AtomicU64, end: &mpsc::Receiver<()>) {
    if end.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let mut ticks = 0;
    loop {
        let line = line(label, done.load(Ordering::Relaxed), total, ticks);
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
        let _ = io::stderr().flush();
        ticks += 1;
        if end.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
            let _ = write!(io::stderr(), "\r\x1b[K");
            return;
        }
    }
}

/// A transfer whose bytes are not counted on the way shows only that it goes on.
fn line(label: &str, done: u64, total: u64, ticks: usize) -> String {
    if done == 0 {
        let dots = ".".repeat(ticks / 5 % 4);
        return format!("{label} {} {dots}", human_size(total));
    }
    let percent = done.min(total) * 100 / total.max(1);
    format!("{label} {} of {} ({percent} %)", human_size(done), human_size(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_far_it_is() {
        assert_eq!(line("reading", 3 << 20, 12 << 20, 0), "reading 3.0 MiB of 12.0 MiB (25 %)");
        assert_eq!(line("storing", 0, 12 << 20, 10), "storing 12.0 MiB ..");
    }
}

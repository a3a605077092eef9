//! The lines of a log for an instance that is kept: up to a point that moves on from step to step.
//!
//! They are those that a step gets which reads the log from its beginning, see [`StepLog::lines`].

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt as _;
use pugmark_log::Entry;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver};

use super::Shared;
use crate::error::Error;
use crate::handler::{LogLine, LogSource};
use crate::lifecycle::Lifecycle;
use crate::lines::Cursor;
use crate::step_log::StepLog;

/// Entries that are passed on at a time.
const BATCH: usize = 64;
/// How many such batches wait to be taken.
const WAITING: usize = 4;

type Batch = Vec<Result<Entry, pugmark_log::Error>>;

/// The log of one instance.
pub(super) struct Feed {
    log: Arc<StepLog>,
    batches: Receiver<Batch>,
    ready: VecDeque<Entry>,
    cursor: Cursor,
}

impl Feed {
    /// The log from its beginning. Blocks where it is read.
    pub(super) fn new(shared: &Shared, lifecycle: Option<&Lifecycle>, handle: &Handle) -> Self {
        let cache = Some(Arc::clone(&shared.cache));
        let log = StepLog::new(shared.bucket.clone(), &shared.upto, cache.clone(), None);
        let vector = &shared.upto.log;
        let entries = shared.bucket.entries(vector, 0..vector.count(), cache);
        let (sender, batches) = mpsc::channel(WAITING);
        handle.spawn(async move {
            let mut chunks = entries.ready_chunks(BATCH);
            while let Some(batch) = chunks.next().await {
                if sender.send(batch).await.is_err() {
                    return;
                }
            }
        });
        Self { log, batches, ready: VecDeque::new(), cursor: Cursor::new(lifecycle) }
    }

    /// What the lines sent so far name can be read from this.
    pub(super) fn log(&self) -> &Arc<StepLog> {
        &self.log
    }

    /// The lines before position `n` that were not sent yet.
    pub(super) fn before(&mut self, n: u64) -> Before<'_> {
        Before { feed: self, n }
    }

    /// The position of the next entry.
    pub(super) fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// Whether an instance that was fed from here can take no further step.
    pub(super) fn is_stale(&self) -> bool {
        self.cursor.is_stale()
    }

    /// The next `count` entries, which stay; fewer at the end of the log.
    pub(super) fn peek(&mut self, count: u64) -> Result<Vec<Entry>, Error> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        while self.ready.len() < count && self.read()? {}
        Ok(self.ready.iter().take(count).cloned().collect())
    }

    fn pop(&mut self) -> Result<Option<Entry>, Error> {
        while self.ready.is_empty() && self.read()? {}
        Ok(self.ready.pop_front())
    }

    /// Takes in the next batch; false at the end of the log.
    fn read(&mut self) -> Result<bool, Error> {
        let Some(batch) = self.batches.blocking_recv() else { return Ok(false) };
        for entry in batch {
            self.ready.push_back(entry?);
        }
        Ok(true)
    }

    fn next_before(&mut self, n: u64) -> Result<Option<LogLine>, Error> {
        loop {
            if let Some(line) = self.cursor.before_entry()? {
                return Ok(Some(line));
            }
            if self.position() >= n {
                return self.cursor.end();
            }
            let Some(entry) = self.pop()? else { return self.cursor.end() };
            if let Some(line) = self.cursor.entry(entry) {
                return Ok(Some(line));
            }
        }
    }
}

/// The part of a feed before a position.
pub(super) struct Before<'a> {
    feed: &'a mut Feed,
    n: u64,
}

impl LogSource for Before<'_> {
    fn next_line(&mut self) -> Result<Option<LogLine>, Error> {
        let line = self.feed.next_before(self.n)?;
        if let Some(line) = &line {
            self.feed.log.sent(line);
        }
        Ok(line)
    }
}

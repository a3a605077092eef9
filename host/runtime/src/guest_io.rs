//! A step's log and bodies for a guest, which runs on a thread of its own and blocks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use pugmark_log::{Digest, Entry};
use tokio::runtime::Handle;

use crate::error::Error;
use crate::handler::{LogLine, LogSource, ObjectSource};
use crate::lines::Cursor;
use crate::step_log::{Found, StepLog};

/// How many entries are taken from the store's stream at a time, if it has them.
const BATCH: usize = 64;

type Batch = Vec<Result<Entry, pugmark_log::Error>>;

/// The lines of a log, for a thread that may block.
pub struct BlockingLines {
    handle: Handle,
    log: Arc<StepLog>,
    cursor: Cursor,
    batches: BoxStream<'static, Batch>,
    batch: std::vec::IntoIter<Result<Entry, pugmark_log::Error>>,
}

impl BlockingLines {
    /// The lines of `log`; `handle` is the runtime that reads them.
    pub fn new(log: &Arc<StepLog>, handle: Handle) -> Self {
        Self::from(log, log.beginning(), handle)
    }

    /// The lines of `log` from `cursor` on.
    pub fn from(log: &Arc<StepLog>, cursor: Cursor, handle: Handle) -> Self {
        let batches = log.entries(cursor.position()).ready_chunks(BATCH).boxed();
        Self { handle, log: Arc::clone(log), cursor, batches, batch: Vec::new().into_iter() }
    }

    /// How far the lines have been taken.
    pub fn into_cursor(self) -> Cursor {
        self.cursor
    }

    fn next(&mut self) -> Result<Option<LogLine>, Error> {
        loop {
            if let Some(line) = self.cursor.before_entry()? {
                return Ok(Some(line));
            }
            let Some(entry) = self.next_entry()? else { return self.cursor.end() };
            if let Some(line) = self.cursor.entry(entry) {
                return Ok(Some(line));
            }
        }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            if let Some(entry) = self.batch.next() {
                return Ok(Some(entry?));
            }
            match self.handle.block_on(self.batches.next()) {
                Some(batch) => self.batch = batch.into_iter(),
                None => return Ok(None),
            }
        }
    }
}

impl LogSource for BlockingLines {
    fn next_line(&mut self) -> Result<Option<LogLine>, Error> {
        let line = self.next()?;
        if let Some(line) = &line {
            // Not before: what was read ahead depends on the store's timing.
            self.log.sent(line);
        }
        Ok(line)
    }
}

/// The bodies that a log names, for a thread that may block. Keeps those that were read last, so
/// that a guest reads bodies in pieces at the cost of reading each once.
pub struct BlockingObjects {
    handle: Handle,
    log: Arc<StepLog>,
    limit: u64,
    kept: Mutex<VecDeque<(Digest, Bytes)>>,
}

impl BlockingObjects {
    /// The bodies that `log` names, up to `limit` bytes each; `handle` is the runtime that reads
    /// them. As many bytes are kept at most.
    #[must_use]
    pub fn new(log: Arc<StepLog>, handle: Handle, limit: u64) -> Self {
        Self { handle, log, limit, kept: Mutex::default() }
    }

    /// Lets go of the bodies that were kept.
    pub fn forget(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn body(&self, hash: &Digest) -> Result<Option<Bytes>, Error> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, body)) = kept.iter().find(|(of, _)| of == hash) {
            return Ok(Some(body.clone()));
        }
        let body = match self.handle.block_on(self.log.find(hash))? {
            None => return Ok(None),
            Some(Found::Whole(body)) => body,
            Some(Found::Object { size }) if size > self.limit => {
                return Err(Error::ObjectTooLarge { hash: *hash, size, limit: self.limit });
            }
            Some(Found::Object { .. }) => self.handle.block_on(self.log.get_object(hash))?,
        };
        kept.push_back((*hash, body.clone()));
        let mut bytes: u64 = kept.iter().map(|(_, body)| body.len() as u64).sum();
        while bytes > self.limit {
            bytes -= kept.pop_front().map_or(bytes, |(_, body)| body.len() as u64);
        }
        Ok(Some(body))
    }
}

impl ObjectSource for BlockingObjects {
    fn size(&self, hash: &Digest) -> Result<Option<u64>, Error> {
        Ok(self.log.size(hash))
    }

    fn read(&self, hash: &Digest, offset: u64, len: u64) -> Result<Option<Bytes>, Error> {
        let Some(body) = self.body(hash)? else { return Ok(None) };
        let size = body.len() as u64;
        let (start, end) = (offset.min(size), offset.saturating_add(len).min(size));
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        Ok(Some(body.slice(index(start)..index(end))))
    }
}

//! One step's view of its session: the log line by line, and the bodies that it names.
//!
//! What a handler can fetch is what it has been sent: an object becomes readable with the line that
//! names it. So a body read while the log is folded does not depend on how much log follows.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{Body, Bucket, Digest, Entry, NodeCache, Snapshot, Vector};

use crate::error::Error;
use crate::handler::LogLine;
use crate::lifecycle::Lifecycle;
use crate::lines::{Cursor, FORK, START};

/// The entries of a log.
pub(crate) type Entries = BoxStream<'static, Result<Entry, pugmark_log::Error>>;

/// The log that a step sees.
pub struct StepLog {
    bucket: Bucket,
    log: Mutex<Vector>,
    cache: Option<Arc<NodeCache>>,
    lifecycle: Option<Lifecycle>,
    sent: Mutex<Sent>,
}

/// The lines, as they are made of the log's entries one after the other.
struct Lines {
    entries: Entries,
    cursor: Cursor,
}

/// What a handler was sent so far.
#[derive(Default)]
struct Sent {
    bodies: HashMap<Digest, (Located, Option<Arc<str>>)>,
    /// Each media type once: a long log has few.
    types: HashSet<Arc<str>>,
}

/// Where the body of something that was sent is found.
#[derive(Clone)]
enum Located {
    /// In the entry at this position.
    Inline { position: u64, size: u64 },
    /// In an object of its own.
    Object { size: u64 },
    /// Made up for this step.
    Synthesized(Bytes),
}

/// A body to be read.
pub enum Found {
    /// All of it, checked.
    Whole(Bytes),
    /// An object of its own, of this size: read it from the bucket.
    Object {
        /// Its length in bytes.
        size: u64,
    },
}

impl StepLog {
    /// The log of a snapshot. `cache` keeps leaves for the next step on the same session. With
    /// `lifecycle`, lines tell where the session comes from.
    #[must_use]
    pub fn new(
        bucket: Bucket,
        tip: &Snapshot,
        cache: Option<Arc<NodeCache>>,
        lifecycle: Option<Lifecycle>,
    ) -> Arc<Self> {
        let log = Mutex::new(tip.log.clone());
        Arc::new(Self { bucket, log, cache, lifecycle, sent: Mutex::default() })
    }

    /// Goes on with a longer log, which begins with this one. What was sent stays readable.
    pub(crate) fn grow(&self, tip: &Snapshot) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = tip.log.clone();
    }

    /// Where the lines begin.
    pub(crate) fn beginning(&self) -> Cursor {
        Cursor::new(self.lifecycle.as_ref())
    }

    /// The entries from this position on.
    pub(crate) fn entries(&self, from: u64) -> Entries {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        self.bucket.entries(&log, from..log.count(), self.cache.clone())
    }

    fn entry(&self, position: u64) -> Entries {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        self.bucket.entries(&log, position..position + 1, self.cache.clone())
    }

    /// The lines that a handler is sent, in order: all entries but control records, or a `start`
    /// line while there is none; lifecycle lines where they were asked for. A body becomes readable
    /// once its line is [`StepLog::sent`].
    pub fn lines(&self) -> BoxStream<'static, Result<LogLine, Error>> {
        let lines = Lines { entries: self.entries(0), cursor: self.beginning() };
        futures::stream::try_unfold(lines, |mut lines| async move {
            Ok(lines.next().await?.map(|line| (line, lines)))
        })
        .boxed()
    }

    /// Makes the body of a line readable: the line goes out to the handler now.
    pub fn sent(&self, line: &LogLine) {
        let (position, size) = (line.position, line.entry.size());
        let located = match line.entry.data() {
            Some(body) if matches!(line.event, START | FORK) => Located::Synthesized(body.clone()),
            Some(_) => Located::Inline { position, size },
            None => Located::Object { size },
        };
        let mut sent = self.lock();
        let media_type = line.entry.attributes().content_type.as_deref().map(|name| {
            if let Some(known) = sent.types.get(name) {
                return Arc::clone(known);
            }
            let new: Arc<str> = name.into();
            sent.types.insert(Arc::clone(&new));
            new
        });
        sent.bodies.insert(line.entry.hash(), (located, media_type));
    }

    /// The length of a body that was sent; `None` if it was not.
    #[must_use]
    pub fn size(&self, hash: &Digest) -> Option<u64> {
        Some(match &self.lock().bodies.get(hash)?.0 {
            Located::Inline { size, .. } | Located::Object { size } => *size,
            Located::Synthesized(body) => body.len() as u64,
        })
    }

    /// The media type that the newest line with this body has.
    #[must_use]
    pub fn media_type(&self, hash: &Digest) -> Option<String> {
        Some(self.lock().bodies.get(hash)?.1.as_ref()?.to_string())
    }

    /// A body that was sent; `None` if it was not.
    ///
    /// # Errors
    /// Whatever kept the store from answering.
    pub async fn find(&self, hash: &Digest) -> Result<Option<Found>, Error> {
        let located = self.lock().bodies.get(hash).map(|(located, _)| located.clone());
        Ok(match located {
            None => None,
            Some(Located::Synthesized(body)) => Some(Found::Whole(body)),
            Some(Located::Object { size }) => Some(Found::Object { size }),
            Some(Located::Inline { position, .. }) => {
                let entry = self.entry(position).try_next().await?;
                entry.and_then(|entry| entry.data().cloned()).map(Found::Whole)
            }
        })
    }

    /// Reads an object that [`StepLog::find`] found, piece by piece, checked on the way.
    ///
    /// # Errors
    /// Whatever kept the store from answering.
    pub async fn read_object(&self, hash: &Digest) -> Result<Body, Error> {
        Ok(self.bucket.read_object(hash).await?)
    }

    /// Reads part of an object that the caller has read whole, and so checked, before.
    ///
    /// # Errors
    /// Whatever kept the store from answering.
    pub async fn read_checked_range(
        &self,
        hash: &Digest,
        range: std::ops::Range<u64>,
    ) -> Result<Bytes, Error> {
        Ok(self.bucket.get_object_range(hash, range).await?)
    }

    /// Reads an object that [`StepLog::find`] found, whole.
    ///
    /// # Errors
    /// Whatever kept the store from answering.
    pub async fn get_object(&self, hash: &Digest) -> Result<Bytes, Error> {
        Ok(self.bucket.get_object(hash).await?)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    async fn next(&mut self) -> Result<Option<LogLine>, Error> {
        loop {
            if let Some(line) = self.cursor.before_entry()? {
                return Ok(Some(line));
            }
            let Some(entry) = self.entries.next().await else { return self.cursor.end() };
            if let Some(line) = self.cursor.entry(entry?) {
                return Ok(Some(line));
            }
        }
    }
}

#[cfg(test)]
mod tests;

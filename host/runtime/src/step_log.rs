//! One step's view of its session: the log line by line, and the bodies that it names.
//!
//! What a handler can fetch is what it has been sent: an object becomes readable with the line that
//! names it. So a body read while the log is folded does not depend on how much log follows.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{Body, Bucket, Digest, Entry, Event, NodeCache, Snapshot, Vector};

use crate::error::Error;
use crate::handler::LogLine;
use crate::lifecycle::{ForkPoint, Lifecycle, fork_entry, start_entry};

/// The log that a step sees.
pub struct StepLog {
    bucket: Bucket,
    log: Vector,
    cache: Option<Arc<NodeCache>>,
    lifecycle: Option<Lifecycle>,
    sent: Mutex<Sent>,
}

/// The lines, as they are made of the log's entries one after the other.
struct Lines {
    entries: BoxStream<'static, (u64, Result<Entry, pugmark_log::Error>)>,
    /// Whether a `start` line comes first in any case.
    start_first: bool,
    /// The line that is still to come before the entry at its position.
    fork: Option<ForkPoint>,
    /// A line that waits for the `fork` line before it.
    held: Option<LogLine>,
    anything_sent: bool,
}

/// What a handler was sent so far.
#[derive(Default)]
struct Sent {
    bodies: HashMap<Digest, (Located, Option<Arc<str>>)>,
    /// Each media type once: a long log has few.
    types: HashSet<Arc<str>>,
}

/// The event of the line that stands in for a log without any.
const START: &str = "start";

/// The event of the line where a forked session's own history begins.
const FORK: &str = "fork";

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
        let log = tip.log.clone();
        Arc::new(Self { bucket, log, cache, lifecycle, sent: Mutex::default() })
    }

    /// The lines that a handler is sent, in order: all entries but control records, or a `start`
    /// line while there is none; lifecycle lines where they were asked for. A body becomes readable
    /// once its line is [`StepLog::sent`].
    pub fn lines(&self) -> BoxStream<'static, Result<LogLine, Error>> {
        let entries = self.bucket.entries(&self.log, 0..self.log.count(), self.cache.clone());
        let lines = Lines {
            entries: futures::stream::iter(0_u64..).zip(entries).boxed(),
            start_first: self.lifecycle.is_some(),
            fork: self.lifecycle.as_ref().and_then(|lifecycle| lifecycle.fork.clone()),
            held: None,
            anything_sent: false,
        };
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
                let range = position..position + 1;
                let mut entries = self.bucket.entries(&self.log, range, self.cache.clone());
                let entry = entries.try_next().await?;
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
        if self.start_first && !self.anything_sent {
            return self.start_line();
        }
        if let Some(line) = self.held.take() {
            return Ok(Some(line));
        }
        while let Some((position, entry)) = self.entries.next().await {
            let line = line_of(position, entry?);
            let fork = self.fork.take_if(|point| point.position <= position);
            self.anything_sent |= line.is_some();
            match fork {
                None if line.is_none() => {}
                None => return Ok(line),
                Some(point) => {
                    self.held = line;
                    return self.fork_line(&point);
                }
            }
        }
        match self.fork.take() {
            Some(point) => self.fork_line(&point),
            None if self.anything_sent => Ok(None),
            None => self.start_line(),
        }
    }

    fn start_line(&mut self) -> Result<Option<LogLine>, Error> {
        self.anything_sent = true;
        Ok(Some(LogLine { position: 0, event: START, entry: start_entry()? }))
    }

    fn fork_line(&mut self, point: &ForkPoint) -> Result<Option<LogLine>, Error> {
        self.anything_sent = true;
        Ok(Some(LogLine { position: point.position, event: FORK, entry: fork_entry(point)? }))
    }
}

/// The line of an entry; `None` for a control record.
pub(crate) fn line_of(position: u64, entry: Entry) -> Option<LogLine> {
    let event = match entry.event() {
        _ if entry.is_pause() => return None,
        Event::Push => "push",
        Event::Wake => "wake",
        Event::Other => "other",
    };
    Some(LogLine { position, event, entry })
}

#[cfg(test)]
mod tests;

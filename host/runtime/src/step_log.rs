//! One step's view of its session: the log line by line, and the bodies that it names.
//!
//! What a handler can fetch is what it has been sent: an object becomes readable with the line that
//! names it. So a body read while the log is folded does not depend on how much log follows.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{Attributes, Body, Bucket, Digest, Draft, Event, NodeCache, Snapshot, Vector};

use crate::error::Error;
use crate::handler::LogLine;

/// The log that a step sees.
pub struct StepLog {
    bucket: Bucket,
    log: Vector,
    cache: Option<Arc<NodeCache>>,
    sent: Mutex<Sent>,
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
    /// The log of a snapshot. `cache` keeps leaves for the next step on the same session.
    #[must_use]
    pub fn new(bucket: Bucket, tip: &Snapshot, cache: Option<Arc<NodeCache>>) -> Arc<Self> {
        Arc::new(Self { bucket, log: tip.log.clone(), cache, sent: Mutex::default() })
    }

    /// The lines that a handler is sent, in order: all entries but control records, or a `start`
    /// line while there is none. A body becomes readable once its line is [`StepLog::sent`].
    pub fn lines(&self) -> BoxStream<'static, Result<LogLine, Error>> {
        let entries = self.bucket.entries(&self.log, 0..self.log.count(), self.cache.clone());
        let numbered = futures::stream::iter(0_u64..).zip(entries);
        let start = (numbered.boxed(), true);
        let lines = futures::stream::try_unfold(start, |(mut numbered, nothing_yet)| async move {
            while let Some((position, entry)) = numbered.next().await {
                let entry = entry?;
                if entry.is_pause() {
                    continue;
                }
                let event = match entry.event() {
                    Event::Push => "push",
                    Event::Wake => "wake",
                    Event::Other => "other",
                };
                return Ok(Some((LogLine { position, event, entry }, (numbered, false))));
            }
            if nothing_yet {
                let line = start_line()?;
                return Ok(Some((line, (futures::stream::empty().boxed(), false))));
            }
            Ok(None)
        });
        lines.boxed()
    }

    /// Makes the body of a line readable: the line goes out to the handler now.
    pub fn sent(&self, line: &LogLine) {
        let (position, size) = (line.position, line.entry.size());
        let located = match line.entry.data() {
            Some(body) if line.event == START => Located::Synthesized(body.clone()),
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

fn start_line() -> Result<LogLine, Error> {
    let content_type = Some("application/json".to_owned());
    let attributes = Attributes { content_type, ..Attributes::default() };
    let entry = Draft::push(&br#"{"kind":"start"}"#[..], attributes).build()?;
    Ok(LogLine { position: 0, event: START, entry })
}

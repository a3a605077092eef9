//! A step's bodies for the object endpoint.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::Digest;

use crate::endpoint::{Body, ReadRange, ServedObjects};
use crate::error::Error;
use crate::step_log::{Found, StepLog};

/// A part of an object is read in pieces of this many bytes.
const PIECE_BYTES: u64 = 1024 * 1024;

/// The bodies that a step's log names.
pub struct Served {
    log: Arc<StepLog>,
    /// Objects that were read whole, and so checked, for a part of them.
    checked: Arc<Mutex<HashSet<Digest>>>,
}

impl Served {
    /// The bodies that `log` names.
    #[must_use]
    pub fn new(log: Arc<StepLog>) -> Arc<Self> {
        Arc::new(Self { log, checked: Arc::default() })
    }

    async fn find(&self, hash: &Digest) -> Result<Option<Body>, Error> {
        let content_type = self.log.media_type(hash);
        Ok(self.log.find(hash).await?.map(|found| match found {
            Found::Whole(body) => Body { content_type, ..whole(body) },
            Found::Object { size } => Body { content_type, ..self.object(*hash, size) },
        }))
    }

    fn object(&self, hash: Digest, size: u64) -> Body {
        let (log, checked) = (Arc::clone(&self.log), Arc::clone(&self.checked));
        let read: ReadRange = Box::new(move |range: Range<u64>| {
            if range == (0..size) {
                return all_of(log, hash);
            }
            part_of(log, checked, hash, range)
        });
        Body { size, content_type: None, read }
    }
}

impl ServedObjects for Served {
    fn open<'a>(&'a self, hash: &'a Digest) -> BoxFuture<'a, Result<Option<Body>, Error>> {
        Box::pin(self.find(hash))
    }
}

fn whole(body: Bytes) -> Body {
    let size = body.len() as u64;
    let read: ReadRange = Box::new(move |range: Range<u64>| {
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(body.len());
        let part = body.slice(index(range.start)..index(range.end));
        futures::stream::once(async move { Ok(part) }).boxed()
    });
    Body { size, content_type: None, read }
}

fn all_of(log: Arc<StepLog>, hash: Digest) -> BoxStream<'static, Result<Bytes, Error>> {
    let open = async move {
        let body = log.read_object(&hash).await?;
        Ok::<_, Error>(body.stream.map_err(Error::from))
    };
    futures::stream::once(open).try_flatten().boxed()
}

fn part_of(
    log: Arc<StepLog>,
    checked: Arc<Mutex<HashSet<Digest>>>,
    hash: Digest,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes, Error>> {
    let known = checked.lock().unwrap_or_else(PoisonError::into_inner).contains(&hash);
    let check = {
        let log = Arc::clone(&log);
        async move {
            if !known {
                let mut pieces = log.read_object(&hash).await?.stream;
                while pieces.try_next().await?.is_some() {}
                checked.lock().unwrap_or_else(PoisonError::into_inner).insert(hash);
            }
            Ok(Bytes::new())
        }
    };
    let pieces = futures::stream::try_unfold(range, move |mut rest| {
        let log = Arc::clone(&log);
        async move {
            if rest.is_empty() {
                return Ok(None);
            }
            let piece = rest.start..rest.end.min(rest.start + PIECE_BYTES);
            rest.start = piece.end;
            Ok(Some((log.read_checked_range(&hash, piece).await?, rest)))
        }
    });
    futures::stream::once(check)
        .chain(pieces)
        .try_filter(|piece| futures::future::ready(!piece.is_empty()))
        .boxed()
}

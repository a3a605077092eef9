//! Reading a log: a few rounds of parallel reads of its nodes, never the whole of it in memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::entry::Entry;
use crate::error::Error;
use crate::layout;
use crate::vector::{FAN_OUT, NodeRef, Vector, overlap};

/// How many nodes are read at a time.
const PARALLEL: usize = 8;

/// Leaves that were read before, for a reader that reads the same growing log again and again.
///
/// Keeps the first ones up to its limit and evicts none: a log is read from its beginning, so that
/// what was read first is read again first.
pub struct NodeCache {
    limit_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    bytes: usize,
    leaves: HashMap<Digest, Arc<[Entry]>>,
}

impl NodeCache {
    /// A cache of leaves up to this many bytes of entries.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, kept: Mutex::default() }
    }

    fn get(&self, hash: &Digest) -> Option<Arc<[Entry]>> {
        self.lock().leaves.get(hash).cloned()
    }

    fn put(&self, hash: Digest, leaf: &Arc<[Entry]>) {
        let bytes: usize = leaf.iter().map(|entry| entry.line().len()).sum();
        let mut kept = self.lock();
        if kept.bytes + bytes <= self.limit_bytes
            && kept.leaves.insert(hash, leaf.clone()).is_none()
        {
            kept.bytes += bytes;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Bucket {
    /// The entries of a log in `range`, in order, each checked on the way.
    pub fn entries(
        &self,
        log: &Vector,
        range: Range<u64>,
        cache: Option<Arc<NodeCache>>,
    ) -> BoxStream<'static, Result<Entry, Error>> {
        let tail_start = log.tail_start();
        let tail: Vec<Entry> = log
            .tail()
            .iter()
            .zip(tail_start..)
            .filter(|(_, position)| range.contains(position))
            .map(|(entry, _)| entry.clone())
            .collect();
        let wanted = range.clone();
        let bucket = self.clone();
        self.leaves(log, range)
            .map_ok(move |leaf| {
                let (bucket, cache) = (bucket.clone(), cache.clone());
                async move { Ok((leaf.start, bucket.leaf(&leaf.hash, cache.as_deref()).await?)) }
            })
            .try_buffered(PARALLEL)
            .map_ok(move |(start, leaf)| {
                let from = usize::try_from(wanted.start.saturating_sub(start)).unwrap_or(FAN_OUT);
                let to = usize::try_from(wanted.end - start).unwrap_or(FAN_OUT).min(FAN_OUT);
                let entries = (from..to).map(move |index| Ok(leaf[index].clone()));
                futures::stream::iter(entries)
            })
            .try_flatten()
            .chain(futures::stream::iter(tail.into_iter().map(Ok)))
            .boxed()
    }

    /// The leaves that hold `range`, in order. Reads only the nodes above them.
    fn leaves(
        &self,
        log: &Vector,
        range: Range<u64>,
    ) -> BoxStream<'static, Result<NodeRef, Error>> {
        let mut open = log.nodes(&range);
        open.reverse();
        let bucket = self.clone();
        futures::stream::try_unfold(open, move |mut open| {
            let (bucket, range) = (bucket.clone(), range.clone());
            async move {
                while let Some(node) = open.pop() {
                    if node.level == 0 {
                        return Ok(Some((node, open)));
                    }
                    let children = bucket.children_of(&node).await?;
                    open.extend(children.into_iter().rev().filter(|c| overlap(&c.range(), &range)));
                }
                Ok(None)
            }
        })
        .boxed()
    }

    pub(crate) async fn children_of(&self, node: &NodeRef) -> Result<Vec<NodeRef>, Error> {
        let bytes = self.node_bytes(&node.hash).await?;
        check_full(&node.hash, lines(&bytes).count())?;
        let level = node.level - 1;
        let mut children = Vec::with_capacity(FAN_OUT);
        for (line, index) in lines(&bytes).zip(0..) {
            let hash: Digest = serde_json::from_slice(&line)
                .map_err(|source| Error::corrupt(layout::object(&node.hash), source))?;
            let start = node.start + index * NodeRef::span(level);
            children.push(NodeRef { hash, level, start });
        }
        Ok(children)
    }

    pub(crate) async fn leaf(
        &self,
        hash: &Digest,
        cache: Option<&NodeCache>,
    ) -> Result<Arc<[Entry]>, Error> {
        if let Some(leaf) = cache.and_then(|cache| cache.get(hash)) {
            return Ok(leaf);
        }
        let bytes = self.node_bytes(hash).await?;
        let entries: Vec<Entry> = lines(&bytes)
            .map(Entry::parse)
            .collect::<Result<_, _>>()
            .map_err(|error| Error::corrupt(layout::object(hash), error))?;
        check_full(hash, entries.len())?;
        let leaf: Arc<[Entry]> = entries.into();
        if let Some(cache) = cache {
            cache.put(*hash, &leaf);
        }
        Ok(leaf)
    }

    /// A node that the log names and that is not there is damage, not a wrong name.
    pub(crate) async fn node_bytes(&self, hash: &Digest) -> Result<Bytes, Error> {
        self.get_object(hash).await.map_err(|error| match error {
            Error::ObjectNotFound { hash } => {
                Error::corrupt(layout::object(&hash), "a log needs it, and it is missing")
            }
            error => error,
        })
    }

    /// The leaves of a whole log from the newest to the oldest, as they are stored.
    pub(crate) fn leaves_backwards(
        &self,
        log: &Vector,
    ) -> BoxStream<'static, Result<NodeRef, Error>> {
        let open = log.nodes(&(0..log.count()));
        let bucket = self.clone();
        futures::stream::try_unfold(open, move |mut open| {
            let bucket = bucket.clone();
            async move {
                while let Some(node) = open.pop() {
                    if node.level == 0 {
                        return Ok(Some((node, open)));
                    }
                    open.extend(bucket.children_of(&node).await?);
                }
                Ok(None)
            }
        })
        .boxed()
    }
}

fn check_full(hash: &Digest, len: usize) -> Result<(), Error> {
    if len == FAN_OUT {
        return Ok(());
    }
    let reason = format!("a node of {len} lines instead of {FAN_OUT}");
    Err(Error::corrupt(layout::object(hash), reason))
}

/// The lines of a node, each a slice of its bytes.
pub(crate) fn lines(bytes: &Bytes) -> impl Iterator<Item = Bytes> + '_ {
    let mut start = 0;
    memchr::memchr_iter(b'\n', bytes).map(move |end| {
        let line = bytes.slice(start..end);
        start = end + 1;
        line
    })
}

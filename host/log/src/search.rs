//! Finding an entry of a log by the hash of its body, newest first.
//!
//! Bodies below a kilobyte live in their entries only, so a hash leads to them through the log.
//! Leaves are searched as bytes and parsed only where the hash occurs.

use bytes::Bytes;
use futures::future::ready;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use memchr::memmem::Finder;

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::entry::Entry;
use crate::error::Error;
use crate::layout;
use crate::read::lines;
use crate::vector::Vector;

/// How many leaves are read at a time.
const PARALLEL: usize = 8;

/// Which leaves a search checks against their hashes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Those it takes something from.
    Matching,
    /// All that it reads: where it matters that something is *not* there.
    All,
}

impl Bucket {
    /// The newest entry of each object of `log` whose 64 hexadecimal digits begin with `prefix`, at
    /// most `limit` objects. With all 64 digits given, the search ends at the first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Store`].
    pub async fn find_entries(
        &self,
        log: &Vector,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        let limit = if prefix.len() == 64 { 1 } else { limit };
        let mut found: Vec<Entry> = Vec::new();
        let mut take = |entry: &Entry| {
            let new = found.iter().all(|other| other.hash() != entry.hash());
            if new && entry.hash().hex().starts_with(prefix) {
                found.push(entry.clone());
            }
            found.len() >= limit
        };
        if log.tail().iter().rev().any(&mut take) {
            return Ok(found);
        }
        let mut leaves =
            self.leaves_with(log, &format!("\"hash\":\"sha256:{prefix}"), Check::Matching);
        while let Some(entries) = leaves.try_next().await? {
            if entries.iter().rev().any(&mut take) {
                break;
            }
        }
        drop(leaves);
        if found.is_empty() {
            // A hash that is nowhere may have been where a leaf is damaged.
            self.entries(log, 0..log.tail_start(), None)
                .try_fold((), |(), _| ready(Ok(())))
                .await?;
        }
        Ok(found)
    }

    /// The leaves that hold `needle`, newest first. Only these are parsed.
    pub(crate) fn leaves_with(
        &self,
        log: &Vector,
        needle: &str,
        check: Check,
    ) -> BoxStream<'static, Result<Vec<Entry>, Error>> {
        let finder = Finder::new(needle.as_bytes()).into_owned();
        let bucket = self.clone();
        self.leaves_backwards(log)
            .map_ok(move |leaf| {
                let bucket = bucket.clone();
                async move { Ok((leaf.hash, bucket.raw_leaf(&leaf.hash).await?)) }
            })
            .try_buffered(PARALLEL)
            .try_filter_map(move |(hash, bytes)| {
                let holds = finder.find(&bytes).is_some();
                ready(if holds || check == Check::All {
                    checked(hash, &bytes).and_then(|()| {
                        if holds { parsed(hash, &bytes).map(Some) } else { Ok(None) }
                    })
                } else {
                    Ok(None)
                })
            })
            .boxed()
    }

    /// A leaf's bytes, not yet checked: the search checks those it takes something from.
    async fn raw_leaf(&self, hash: &Digest) -> Result<Bytes, Error> {
        let key = layout::object(hash);
        let missing = || Error::corrupt(&key, "a log needs it, and it is missing");
        self.get_file(&key).await?.ok_or_else(missing)
    }
}

/// Fails unless a leaf's bytes are what its hash says.
fn checked(hash: Digest, bytes: &Bytes) -> Result<(), Error> {
    if Digest::of(bytes) == hash {
        return Ok(());
    }
    Err(Error::corrupt(layout::object(&hash), "its bytes do not match its hash"))
}

fn parsed(hash: Digest, bytes: &Bytes) -> Result<Vec<Entry>, Error> {
    let corrupt = |error| Error::corrupt(layout::object(&hash), error);
    lines(bytes).map(Entry::parse).collect::<Result<_, _>>().map_err(corrupt)
}

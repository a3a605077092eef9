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
        let mut leaves = self.leaves_with(log, format!("\"hash\":\"sha256:{prefix}"));
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

    /// The leaves that hold `needle`, newest first. Only these are checked and parsed.
    pub(crate) fn leaves_with(
        &self,
        log: &Vector,
        needle: String,
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
                ready(if holds { checked(hash, &bytes).map(Some) } else { Ok(None) })
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

/// The entries of a leaf whose bytes are what its hash says.
fn checked(hash: Digest, bytes: &Bytes) -> Result<Vec<Entry>, Error> {
    let key = layout::object(&hash);
    if Digest::of(bytes) != hash {
        return Err(Error::corrupt(key, "its bytes do not match its hash"));
    }
    lines(bytes).map(Entry::parse).collect::<Result<_, _>>().map_err(|e| Error::corrupt(key, e))
}

//! Finding an entry of a log by the hash of its body, newest first.
//!
//! Bodies below a kilobyte live in their entries only, so a hash leads to them through the log.
//! Leaves are searched as bytes and parsed only where the hash occurs.

use futures::TryStreamExt as _;
use memchr::memmem::Finder;

use crate::bucket::Bucket;
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
        let needle = format!("\"hash\":\"sha256:{prefix}");
        let finder = Finder::new(needle.as_bytes());
        let mut leaves = self
            .leaves_backwards(log)
            .map_ok(|leaf| async move { Ok((leaf.hash, self.raw_leaf(&leaf.hash).await?)) })
            .try_buffered(PARALLEL);
        while let Some((hash, bytes)) = leaves.try_next().await? {
            if finder.find(&bytes).is_none() {
                continue;
            }
            if crate::Digest::of(&bytes) != hash {
                return Err(Error::corrupt(
                    layout::object(&hash),
                    "its bytes do not match its hash",
                ));
            }
            let entries: Vec<Entry> = lines(&bytes)
                .map(Entry::parse)
                .collect::<Result<_, _>>()
                .map_err(|error| Error::corrupt(layout::object(&hash), error))?;
            if entries.iter().rev().any(&mut take) {
                break;
            }
        }
        drop(leaves);
        Ok(found)
    }

    /// A leaf's bytes, not yet checked: the search checks those it takes something from.
    async fn raw_leaf(&self, hash: &crate::Digest) -> Result<bytes::Bytes, Error> {
        let key = layout::object(hash);
        let missing = || Error::corrupt(&key, "a log needs it, and it is missing");
        self.get_file(&key).await?.ok_or_else(missing)
    }
}

//! Keeping what is there already from being collected.
//!
//! What nothing refers to may be deleted once it is older than the grace window. A writer that is
//! about to refer to something older than half of it makes it young again, and makes sure that no
//! collection had looked before and deletes after: one announces what it is about to delete, looks
//! at its age, and only then deletes it.

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::error::Error;
use crate::layout;

/// How long after announcing it a collection may delete something.
pub(crate) const SWEEP_DEADLINE: Duration = Duration::from_secs(20);
/// How long after its announcement a collection counts as under way. Longer than the deadline by
/// what a request may take.
const SWEEP_LEASE_MS: i64 = 80_000;
/// How long to wait before looking again whether a collection is done.
const PAUSE: Duration = Duration::from_millis(500);
/// How often; longer than the lease.
const LOOKS: u32 = 400;

impl Bucket {
    /// Whether the bucket holds an object of its own with this hash; if so, it will for as long as
    /// it takes to commit what refers to it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not what its hash says; [`Error::Collecting`] or
    /// [`Error::Store`].
    pub async fn keep_object(&self, hash: &Digest) -> Result<bool, Error> {
        let key = layout::object(hash);
        let meta = match self.store.head(&key).await {
            Ok(meta) => meta,
            Err(object_store::Error::NotFound { .. }) => return Ok(false),
            Err(source) => return Err(Error::store("look up", &key, source)),
        };
        if self.is_young(&meta) {
            return Ok(true);
        }
        match self.get_object(hash).await {
            Ok(bytes) => self.keep_young(&key, &bytes, &meta).await.map(|()| true),
            Err(Error::ObjectNotFound { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Sees to it that what was found at `key`, which holds these bytes, is not collected.
    pub(crate) async fn keep_young(
        &self,
        key: &Path,
        bytes: &Bytes,
        found: &ObjectMeta,
    ) -> Result<(), Error> {
        if self.is_young(found) {
            return Ok(());
        }
        for _ in 0..LOOKS {
            let put = self.store.put(key, bytes.clone().into()).await;
            put.map_err(|source| Error::store("write", key, source))?;
            if self.is_announced(key).await? {
                self.pause(PAUSE).await;
                continue;
            }
            match self.store.head(key).await {
                Ok(_) => return Ok(()),
                // A collection that was over before the announcements were looked at.
                Err(object_store::Error::NotFound { .. }) => {}
                Err(source) => return Err(Error::store("look up", key, source)),
            }
        }
        Err(Error::Collecting { key: key.to_string() })
    }

    fn is_young(&self, meta: &ObjectMeta) -> bool {
        let half_ms = i64::try_from(self.grace.as_millis() / 2).unwrap_or(i64::MAX);
        let now_ms = i64::try_from(self.environment.now().as_millis()).unwrap_or(i64::MAX);
        now_ms.saturating_sub(meta.last_modified.timestamp_millis()) < half_ms
    }

    /// Whether a collection that is under way has announced that it deletes this.
    async fn is_announced(&self, key: &Path) -> Result<bool, Error> {
        let folder = Path::from(layout::SWEEPS);
        let listed = self.store.list(Some(&folder)).try_collect::<Vec<_>>().await;
        let sweeps = listed.map_err(|source| Error::store("list", &folder, source))?;
        if sweeps.is_empty() {
            return Ok(false);
        }
        // Both times are the store's.
        let written = match self.store.head(key).await {
            Ok(meta) => meta.last_modified.timestamp_millis(),
            Err(object_store::Error::NotFound { .. }) => return Ok(true),
            Err(source) => return Err(Error::store("look up", key, source)),
        };
        for sweep in sweeps {
            if written - sweep.last_modified.timestamp_millis() > SWEEP_LEASE_MS {
                continue;
            }
            let names = self.get_file(&sweep.location).await?.unwrap_or_default();
            if names.split(|byte| *byte == b'\n').any(|name| name == key.as_ref().as_bytes()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

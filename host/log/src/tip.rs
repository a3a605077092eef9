//! Finding the newest version: of a session, or of a named component.

use std::sync::Arc;

use object_store::ObjectStoreExt as _;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;

use crate::bucket::Bucket;
use crate::error::Error;
use crate::layout;
use crate::session_id::SessionId;
use crate::snapshot::Snapshot;

/// How the newest version is looked up.
#[derive(Clone)]
pub enum TipLookup {
    /// One listing of one key, on stores that list in order: keys sort newest first.
    Page(Arc<dyn PaginatedListStore>),
    /// Asking for versions until one is missing, by doubling and halving: for local files and
    /// memory, where a look-up is cheap and a listing is not.
    Probe,
}

impl Bucket {
    /// A session's newest snapshot. `hint` is a version that is known to exist.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::SessionRemoved`], [`Error::Corrupt`],
    /// [`Error::NewerFormat`] or [`Error::Store`].
    pub async fn tip(&self, session: &SessionId, hint: Option<u64>) -> Result<Snapshot, Error> {
        let newest = self.newest_version(session, hint).await?;
        let version = newest.ok_or(Error::SessionNotFound { session: *session })?;
        let snapshot = self.snapshot(session, version).await?;
        snapshot.ok_or_else(|| {
            Error::corrupt(layout::snapshot(session, version), "it is listed, but not there")
        })
    }

    /// The number of a session's newest version, the one that removed it included.
    pub(crate) async fn newest_version(
        &self,
        session: &SessionId,
        hint: Option<u64>,
    ) -> Result<Option<u64>, Error> {
        self.newest_in(&layout::snapshots(session), 0, hint).await
    }

    /// The newest of the versions in a folder, which are contiguous from `first`. `hint` is one that
    /// is known to exist.
    pub(crate) async fn newest_in(
        &self,
        folder: &Path,
        first: u64,
        hint: Option<u64>,
    ) -> Result<Option<u64>, Error> {
        match &self.tips {
            TipLookup::Page(pages) => self.newest_by_page(pages.as_ref(), folder).await,
            TipLookup::Probe => self.newest_by_probe(folder, first, hint.unwrap_or(first)).await,
        }
    }

    async fn newest_by_page(
        &self,
        pages: &dyn PaginatedListStore,
        folder: &Path,
    ) -> Result<Option<u64>, Error> {
        let prefix = format!("{folder}/");
        let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        let page = pages
            .list_paginated(Some(&prefix), options)
            .await
            .map_err(|source| Error::store("list", &prefix, source))?;
        let Some(newest) = page.result.objects.first() else { return Ok(None) };
        let version = newest.location.filename().and_then(layout::version_of);
        version.map(Some).ok_or_else(|| Error::corrupt(&newest.location, "not a version's name"))
    }

    async fn newest_by_probe(
        &self,
        folder: &Path,
        first: u64,
        hint: u64,
    ) -> Result<Option<u64>, Error> {
        let mut known = if hint > first && self.has_numbered(folder, hint).await? {
            hint
        } else if self.has_numbered(folder, first).await? {
            first
        } else {
            return Ok(None);
        };
        let mut step = 1;
        while self.has_numbered(folder, known.saturating_add(step)).await? {
            known += step;
            step *= 2;
        }
        let mut missing = known.saturating_add(step);
        while missing - known > 1 {
            let middle = known + (missing - known) / 2;
            if self.has_numbered(folder, middle).await? {
                known = middle;
            } else {
                missing = middle;
            }
        }
        Ok(Some(known))
    }

    /// Whether a session came to be: one whose creation was cut short has a manifest and no
    /// snapshot. One that was removed came to be.
    ///
    /// # Errors
    /// [`Error::Store`] if the store does not answer.
    pub async fn has_session(&self, session: &SessionId) -> Result<bool, Error> {
        self.has_numbered(&layout::snapshots(session), 0).await
    }

    async fn has_numbered(&self, folder: &Path, version: u64) -> Result<bool, Error> {
        let key = layout::numbered(folder, version);
        match self.store.head(&key).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(source) => Err(Error::store("look up", &key, source)),
        }
    }
}

//! Deleting what was not found to be referred to.

use std::collections::HashSet;

use bytes::Bytes;
use futures::future::ready;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};

use super::mark::{Marks, is_old};
use super::{Collect, Garbage, GarbageKind};
use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::error::Error;
use crate::layout;
use crate::refresh::SWEEP_DEADLINE;
use crate::session_id::SessionId;
use crate::timestamp::Timestamp;
use crate::tombstone::Tombstone;

/// How many objects are announced and deleted together.
const BATCH: usize = 256;
/// How many requests are made at a time.
const PARALLEL: usize = 16;

/// A collection that deletes, or only says what it would delete.
#[derive(Clone)]
struct Sweep {
    bucket: Bucket,
    dry_run: bool,
    horizon_ms: i64,
    /// Where this collection announces what it is about to delete.
    announcement: Path,
}

/// What may be deleted.
struct Candidate {
    meta: ObjectMeta,
    /// Only if this session never came to be.
    unborn: Option<SessionId>,
}

impl Bucket {
    /// Deletes what `marks` leaves out.
    pub(super) fn sweep(
        &self,
        marks: Marks,
        options: Collect,
    ) -> BoxStream<'static, Result<Garbage, Error>> {
        let Marks { horizon_ms, objects, removed, manifests, children, .. } = marks;
        let sweep = Sweep {
            bucket: self.clone(),
            dry_run: options.dry_run,
            horizon_ms,
            announcement: Path::from(layout::SWEEPS).join(self.nonce()),
        };
        let removed = futures::stream::iter(removed).flat_map({
            let sweep = sweep.clone();
            move |(session, versions)| sweep.clone().versions(session, versions)
        });
        let children = sweep.clone().unborn(children, GarbageKind::Child);
        let manifests = sweep.clone().unborn(manifests, GarbageKind::Manifest);
        let old_sweeps = sweep.clone().old_sweeps();
        let objects = sweep.objects(objects);
        removed.chain(children).chain(manifests).chain(objects).chain(old_sweeps).boxed()
    }
}

impl Sweep {
    /// Puts tombstones in place of a removed session's versions. Version 0 comes last: where it is
    /// one, all are.
    fn versions(
        self,
        session: SessionId,
        mut versions: Vec<ObjectMeta>,
    ) -> BoxStream<'static, Result<Garbage, Error>> {
        versions.reverse();
        futures::stream::once(async move {
            let first = self.bucket.snapshot(&session, 0).await;
            let done = matches!(first, Err(Error::SessionRemoved { .. }));
            if !self.dry_run && !done {
                self.bucket.mark_removed(&session).await?;
            }
            let versions = if done { Vec::new() } else { versions };
            let (last, rest) = match versions.split_last() {
                None => (None, Vec::new()),
                Some((last, rest)) => (Some(last.clone()), rest.to_vec()),
            };
            let replace = move |meta: ObjectMeta| {
                let sweep = self.clone();
                async move { sweep.replace(session, meta).await }
            };
            let first = replace.clone();
            let rest = futures::stream::iter(rest).map(replace).buffer_unordered(PARALLEL);
            Ok::<_, Error>(rest.chain(futures::stream::iter(last).then(first)))
        })
        .try_flatten()
        .try_filter_map(|garbage| ready(Ok(garbage)))
        .boxed()
    }

    async fn replace(
        &self,
        session: SessionId,
        meta: ObjectMeta,
    ) -> Result<Option<Garbage>, Error> {
        let key = meta.location;
        let Some(version) = key.filename().and_then(layout::version_of) else { return Ok(None) };
        let bytes = self.bucket.get_file(&key).await?;
        if bytes.is_some_and(|bytes| Tombstone::parse(&bytes, &key).is_some()) {
            return Ok(None);
        }
        if !self.dry_run {
            let now = self.bucket.environment.now();
            let line = Tombstone::bare(session, version, now).to_line()?;
            let put = self.bucket.store.put(&key, line.into()).await;
            put.map_err(|source| Error::store("write", &key, source))?;
        }
        Ok(Some(Garbage { key: key.to_string(), bytes: meta.size, kind: GarbageKind::Version }))
    }

    /// Index entries of forks, and manifests, that belong to sessions which never came to be.
    fn unborn(
        self,
        found: Vec<(SessionId, ObjectMeta)>,
        kind: GarbageKind,
    ) -> BoxStream<'static, Result<Garbage, Error>> {
        let sweep = self.clone();
        let candidates = futures::stream::iter(found)
            .map(move |(unborn, meta)| {
                let sweep = sweep.clone();
                async move {
                    let born = sweep.bucket.has_session(&unborn).await?;
                    Ok((!born).then_some(Candidate { meta, unborn: Some(unborn) }))
                }
            })
            .buffer_unordered(PARALLEL)
            .try_filter_map(|candidate| ready(Ok(candidate)));
        self.batches(candidates.boxed(), kind)
    }

    /// Objects that nothing refers to.
    fn objects(self, marked: HashSet<Digest>) -> BoxStream<'static, Result<Garbage, Error>> {
        let folder = Path::from(layout::OBJECTS);
        let horizon_ms = self.horizon_ms;
        let candidates = self
            .bucket
            .store
            .list(Some(&folder))
            .map_err(move |source| Error::store("list", &folder, source))
            .try_filter_map(move |meta| {
                let hash = meta.location.filename().and_then(|name| name.parse::<Digest>().ok());
                let garbage =
                    hash.is_some_and(|hash| !marked.contains(&hash)) && is_old(&meta, horizon_ms);
                ready(Ok(garbage.then_some(Candidate { meta, unborn: None })))
            });
        self.batches(candidates.boxed(), GarbageKind::Object)
    }

    /// Announcements of collections that were cut short.
    fn old_sweeps(self) -> BoxStream<'static, Result<Garbage, Error>> {
        let folder = Path::from(layout::SWEEPS);
        let horizon_ms = self.horizon_ms;
        self.bucket
            .store
            .list(Some(&folder))
            .map_err(move |source| Error::store("list", &folder, source))
            .try_filter(move |meta| ready(is_old(meta, horizon_ms)))
            .and_then(move |meta| {
                let sweep = self.clone();
                async move {
                    if !sweep.dry_run {
                        sweep.delete(&meta.location).await?;
                    }
                    Ok(garbage(&meta, GarbageKind::Sweep))
                }
            })
            .boxed()
    }

    fn batches(
        self,
        candidates: BoxStream<'static, Result<Candidate, Error>>,
        kind: GarbageKind,
    ) -> BoxStream<'static, Result<Garbage, Error>> {
        candidates
            .try_chunks(BATCH)
            .map_err(|chunk| chunk.1)
            .and_then(move |batch| {
                let sweep = self.clone();
                async move { sweep.batch(batch, kind).await }
            })
            .map_ok(|deleted| futures::stream::iter(deleted.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    /// Announces a batch, looks at each once more, and deletes what is as old as it was.
    async fn batch(&self, batch: Vec<Candidate>, kind: GarbageKind) -> Result<Vec<Garbage>, Error> {
        if self.dry_run {
            return Ok(batch.iter().map(|candidate| garbage(&candidate.meta, kind)).collect());
        }
        let mut names = String::new();
        for candidate in &batch {
            names.push_str(candidate.meta.location.as_ref());
            names.push('\n');
        }
        let put = self.bucket.store.put(&self.announcement, Bytes::from(names).into()).await;
        put.map_err(|source| Error::store("write", &self.announcement, source))?;
        let deadline_ms = u64::try_from(SWEEP_DEADLINE.as_millis()).unwrap_or(u64::MAX);
        let until = self.bucket.environment.now().plus_millis(deadline_ms);
        let sweep = self.clone();
        let deleted: Vec<Option<Garbage>> = futures::stream::iter(batch)
            .map(move |candidate| {
                let sweep = sweep.clone();
                async move { sweep.delete_if_old(candidate, kind, until).await }
            })
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        self.delete(&self.announcement).await?;
        Ok(deleted.into_iter().flatten().collect())
    }

    async fn delete_if_old(
        &self,
        candidate: Candidate,
        kind: GarbageKind,
        until: Timestamp,
    ) -> Result<Option<Garbage>, Error> {
        let key = candidate.meta.location;
        let meta = match self.bucket.store.head(&key).await {
            Ok(meta) => meta,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(Error::store("look up", &key, source)),
        };
        let born = match candidate.unborn {
            Some(session) => self.bucket.has_session(&session).await?,
            None => false,
        };
        // Past the deadline writers may take this collection for dead.
        if born || !is_old(&meta, self.horizon_ms) || self.bucket.environment.now() > until {
            return Ok(None);
        }
        self.delete(&key).await?;
        Ok(Some(garbage(&meta, kind)))
    }

    async fn delete(&self, key: &Path) -> Result<(), Error> {
        match self.bucket.store.delete(key).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(Error::store("delete", key, source)),
        }
    }
}

fn garbage(meta: &ObjectMeta, kind: GarbageKind) -> Garbage {
    Garbage { key: meta.location.to_string(), bytes: meta.size, kind }
}

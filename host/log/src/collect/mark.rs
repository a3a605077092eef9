//! Finding all that is referred to.

use std::collections::HashSet;

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectMeta;
use object_store::path::Path;

use super::Marked;
use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::error::Error;
use crate::layout;
use crate::session_id::SessionId;
use crate::snapshot::Snapshot;
use crate::vector::NodeRef;

/// How many sessions are looked at at a time.
const PARALLEL: usize = 8;
/// How many versions of a session are read at a time.
const VERSIONS: usize = 4;

/// What was found by following all references.
pub(super) struct Marks {
    /// What was last changed at this time or before may be deleted.
    pub(super) horizon_ms: i64,
    /// The objects that are referred to.
    pub(super) objects: HashSet<Digest>,
    /// Sessions that were removed before the grace window, with their versions but the last.
    pub(super) removed: Vec<(SessionId, Vec<ObjectMeta>)>,
    /// Old manifests of sessions that seem never to have come to be.
    pub(super) manifests: Vec<(SessionId, ObjectMeta)>,
    /// Old index entries of forks, with the forks.
    pub(super) children: Vec<(SessionId, ObjectMeta)>,
    sessions: u64,
    snapshots: u64,
}

/// The files of a session.
#[derive(Default)]
struct Files {
    /// Oldest first.
    versions: Vec<(u64, ObjectMeta)>,
    manifest: Option<ObjectMeta>,
    children: Vec<(SessionId, ObjectMeta)>,
}

/// The tip of a session, as far as it concerns its versions.
enum Standing {
    /// It never came to be.
    Nothing,
    There,
    /// It was removed, and the grace window has passed.
    Expired,
}

impl Marks {
    pub(super) fn marked(&self) -> Marked {
        let objects = self.objects.len() as u64;
        Marked { sessions: self.sessions, snapshots: self.snapshots, objects }
    }
}

impl Bucket {
    /// Follows all references from all sessions, of all their versions, and from all named components.
    pub(super) async fn mark(&self) -> Result<Marks, Error> {
        let mut marks = Marks {
            horizon_ms: self.horizon_ms(),
            objects: HashSet::new(),
            removed: Vec::new(),
            manifests: Vec::new(),
            children: Vec::new(),
            sessions: 0,
            snapshots: 0,
        };
        self.mark_handlers(&mut marks).await?;
        let bucket = self.clone();
        let horizon_ms = marks.horizon_ms;
        let mut sessions = self
            .all_sessions()
            .map_ok(|(id, _)| {
                let bucket = bucket.clone();
                async move {
                    let files = bucket.files(&id).await?;
                    let standing = bucket.standing(&id, &files, horizon_ms).await?;
                    let pinned = match standing {
                        Standing::There => bucket.pinned(&id).await?,
                        Standing::Nothing | Standing::Expired => None,
                    };
                    Ok((id, files, standing, pinned))
                }
            })
            .try_buffer_unordered(PARALLEL);
        while let Some((id, files, standing, pinned)) = sessions.try_next().await? {
            match standing {
                Standing::Nothing => {
                    let old = files.manifest.filter(|meta| is_old(meta, horizon_ms));
                    marks.manifests.extend(old.map(|meta| (id, meta)));
                }
                Standing::There => {
                    marks.sessions += 1;
                    marks.objects.extend(pinned);
                    self.mark_versions(&mut marks, &id, &files.versions).await?;
                }
                Standing::Expired => {
                    let mut versions: Vec<ObjectMeta> =
                        files.versions.into_iter().map(|(_, meta)| meta).collect();
                    versions.pop();
                    marks.removed.push((id, versions));
                }
            }
            let old = |(_, meta): &(SessionId, ObjectMeta)| is_old(meta, horizon_ms);
            marks.children.extend(files.children.into_iter().filter(old));
        }
        Ok(marks)
    }

    /// The component that a session is pinned to.
    async fn pinned(&self, session: &SessionId) -> Result<Option<Digest>, Error> {
        match self.manifest(session).await {
            Ok(manifest) => Ok(manifest.component),
            // It is damage, and nothing that could be collected.
            Err(Error::SessionNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn files(&self, session: &SessionId) -> Result<Files, Error> {
        let folder = layout::session(session);
        let mut listed = self.store.list(Some(&folder));
        let mut files = Files::default();
        let error = |source| Error::store("list", &folder, source);
        while let Some(meta) = listed.try_next().await.map_err(error)? {
            let mut parts = meta.location.parts().rev();
            let (name, parent) = (parts.next(), parts.next());
            let Some(name) = name.as_ref().map(AsRef::as_ref) else { continue };
            match parent.as_ref().map(AsRef::as_ref) {
                Some("snapshots") => {
                    if let Some(version) = layout::version_of(name) {
                        files.versions.push((version, meta));
                    }
                }
                Some("children") => {
                    if let Ok(child) = name.parse() {
                        files.children.push((child, meta));
                    }
                }
                _ if name == "manifest.json" => files.manifest = Some(meta),
                _ => {}
            }
        }
        files.versions.sort_unstable_by_key(|(version, _)| *version);
        Ok(files)
    }

    async fn standing(
        &self,
        session: &SessionId,
        files: &Files,
        horizon_ms: i64,
    ) -> Result<Standing, Error> {
        let Some((newest, meta)) = files.versions.last() else { return Ok(Standing::Nothing) };
        match self.snapshot(session, *newest).await {
            Ok(_) => Ok(Standing::There),
            Err(Error::SessionRemoved { .. }) if is_old(meta, horizon_ms) => Ok(Standing::Expired),
            Err(Error::SessionRemoved { .. }) => Ok(Standing::There),
            Err(other) => Err(other),
        }
    }

    async fn mark_versions(
        &self,
        marks: &mut Marks,
        session: &SessionId,
        versions: &[(u64, ObjectMeta)],
    ) -> Result<(), Error> {
        let (bucket, session) = (self.clone(), *session);
        let versions: Vec<u64> = versions.iter().map(|(version, _)| *version).collect();
        let mut reads = futures::stream::iter(versions)
            .map(move |version| {
                let bucket = bucket.clone();
                async move { bucket.snapshot(&session, version).await }
            })
            .buffered(VERSIONS);
        while let Some(read) = reads.next().await {
            match read {
                Ok(Some(snapshot)) => {
                    snapshot.check_writable()?;
                    marks.snapshots += 1;
                    self.mark_snapshot(marks, &snapshot).await?;
                }
                // Its last version, within the grace window: those before it are still there.
                Ok(None) | Err(Error::SessionRemoved { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    async fn mark_snapshot(&self, marks: &mut Marks, snapshot: &Snapshot) -> Result<(), Error> {
        let outbox = snapshot.last.outbox.iter().map(|item| &item.entry);
        let entries = snapshot.objects.iter().chain(snapshot.log.tail()).chain(outbox);
        marks.objects.extend(
            entries.filter(|entry| entry.data().is_none()).map(super::super::entry::Entry::hash),
        );
        for record in [&snapshot.step, &snapshot.trace].into_iter().flatten() {
            marks.objects.extend(digests_in(record.get().as_bytes()));
        }
        let mut open = snapshot.log.nodes(&(0..snapshot.log.count()));
        loop {
            let new: Vec<NodeRef> = std::mem::take(&mut open)
                .into_iter()
                .filter(|node| marks.objects.insert(node.hash))
                .collect();
            if new.is_empty() {
                return Ok(());
            }
            let bucket = self.clone();
            let mut reads = futures::stream::iter(new)
                .map(move |node| {
                    let bucket = bucket.clone();
                    async move { bucket.named_by(node).await }
                })
                .buffer_unordered(PARALLEL);
            while let Some(named) = reads.next().await {
                match named? {
                    Named::Nodes(nodes) => open.extend(nodes),
                    Named::Objects(hashes) => marks.objects.extend(hashes),
                }
            }
        }
    }

    async fn named_by(&self, node: NodeRef) -> Result<Named, Error> {
        if node.level > 0 {
            return self.children_of(&node).await.map(Named::Nodes);
        }
        let leaf = self.leaf(&node.hash, None).await?;
        let large = leaf.iter().filter(|entry| entry.data().is_none());
        Ok(Named::Objects(large.map(super::super::entry::Entry::hash).collect()))
    }

    async fn mark_handlers(&self, marks: &mut Marks) -> Result<(), Error> {
        let folder = Path::from(layout::HANDLERS);
        let keys: Vec<ObjectMeta> = self
            .store
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|source| Error::store("list", &folder, source))?;
        for key in keys {
            if let Some(bytes) = self.get_file(&key.location).await? {
                marks.objects.extend(digests_in(&bytes));
            }
        }
        Ok(())
    }
}

enum Named {
    Nodes(Vec<NodeRef>),
    Objects(Vec<Digest>),
}

/// Whether something was last changed before the grace window.
pub(super) fn is_old(meta: &ObjectMeta, horizon_ms: i64) -> bool {
    meta.last_modified.timestamp_millis() < horizon_ms
}

/// All digests that occur in a text, whatever it says of them: records grow fields that name
/// objects, and keeping one too many does no harm.
pub(crate) fn digests_in(text: &[u8]) -> impl Iterator<Item = Digest> + '_ {
    const LEN: usize = "sha256:".len() + 64;
    memchr::memmem::find_iter(text, b"sha256:").filter_map(|at| {
        let digest = text.get(at..at + LEN)?;
        std::str::from_utf8(digest).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_found_in_any_text() {
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        let text = format!(r#"{{"a":"{one}","b":["sha256:12","{two}"]}}sha256:"#);
        assert_eq!(digests_in(text.as_bytes()).collect::<Vec<_>>(), [one, two]);
    }
}

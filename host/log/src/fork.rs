//! Creating sessions: roots, and forks of any version of any session.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::entry::{Draft, Entry};
use crate::error::Error;
use crate::last_step::LastStep;
use crate::layout;
use crate::manifest::{Manifest, Parent};
use crate::put::Put;
use crate::session_id::SessionId;
use crate::snapshot::{Format, Snapshot, SnapshotKind};

impl Bucket {
    /// Creates a root session with an empty log, and returns its version 0.
    ///
    /// # Errors
    /// [`Error::Unknown`] or [`Error::Store`]; then there is no session, or one that nothing names.
    pub async fn start(
        &self,
        handler: Option<String>,
        metadata: BTreeMap<String, String>,
    ) -> Result<Snapshot, Error> {
        let manifest = Manifest::new(self.new_session_id(), None, handler, metadata);
        self.create(&manifest, None, Vec::new()).await
    }

    /// [`Bucket::start`] of a session that is pinned to a component of the bucket, which stays as
    /// long as the session does.
    ///
    /// # Errors
    /// [`Error::ObjectNotFound`] if the bucket has no such object; otherwise as [`Bucket::start`].
    pub async fn start_pinned(
        &self,
        handler: String,
        component: Digest,
        metadata: BTreeMap<String, String>,
    ) -> Result<Snapshot, Error> {
        if !self.keep_object(&component).await? {
            return Err(Error::ObjectNotFound { hash: component });
        }
        let manifest = Manifest::new(self.new_session_id(), None, Some(handler), metadata);
        self.create(&manifest.pinned(Some(component)), None, Vec::new()).await
    }

    /// Creates a session that inherits the log of `parent` as of that version, with `seed` behind
    /// it, and returns its version 0. Costs the same however long the log is.
    ///
    /// Handler, component and metadata are the parent session's.
    ///
    /// # Errors
    /// [`Error::SessionRemoved`] if the parent was; [`Error::EntryTooLong`], [`Error::Unknown`] or
    /// [`Error::Store`].
    pub async fn fork(&self, parent: &Snapshot, seed: &[Draft]) -> Result<Snapshot, Error> {
        parent.check_writable()?;
        // What a removed session holds may be collected at any time.
        self.tip(&parent.session, Some(parent.version)).await?;
        let entries = self.store_drafts(seed).await?;
        let manifest = self.fork_manifest(parent, self.new_session_id()).await?;
        self.create(&manifest, Some(parent), entries).await
    }

    /// Creates the fork that has this id, unless it is there: its id says what it is forked from
    /// and seeded with, and whoever creates it creates the same.
    pub(crate) async fn fork_as(
        &self,
        parent: &Snapshot,
        child: SessionId,
        seed: &Entry,
    ) -> Result<(), Error> {
        let manifest = self.fork_manifest(parent, child).await?;
        self.put_idempotent(&layout::manifest(&child), manifest.to_line()?).await?;
        self.create_version_0(&manifest, Some(parent), vec![seed.clone()]).await.map(drop)
    }

    /// The manifest of a fork, whose parent's index names it then.
    async fn fork_manifest(&self, parent: &Snapshot, child: SessionId) -> Result<Manifest, Error> {
        let inherited = self.manifest(&parent.session).await?;
        let point =
            Parent { session: parent.session, version: parent.version, snapshot: parent.digest() };
        // The index comes before the child's version 0: it may name a child that never came to be,
        // but never lacks one that did.
        let index = layout::children(&parent.session).join(child.to_string());
        self.put_idempotent(&index, Bytes::new()).await?;
        let manifest = Manifest::new(child, Some(point), inherited.handler, inherited.metadata);
        Ok(manifest.pinned(inherited.component))
    }

    async fn create(
        &self,
        manifest: &Manifest,
        parent: Option<&Snapshot>,
        entries: Vec<Entry>,
    ) -> Result<Snapshot, Error> {
        let session = manifest.session;
        let key = layout::manifest(&session);
        if let Put::Lost = self.put_if_absent(&key, &manifest.to_line()?).await? {
            return Err(Error::SessionExists { session });
        }
        let made = self.create_version_0(manifest, parent, entries).await?;
        made.ok_or(Error::SessionExists { session })
    }

    /// Makes the version that a session comes to be with; `None` if it is there already.
    async fn create_version_0(
        &self,
        manifest: &Manifest,
        parent: Option<&Snapshot>,
        entries: Vec<Entry>,
    ) -> Result<Option<Snapshot>, Error> {
        let inherited = parent.map(|parent| parent.log.clone()).unwrap_or_default();
        let seen = inherited.count();
        let (mut log, mut nodes) = (inherited, Vec::new());
        log.append(entries.iter().cloned(), &mut nodes);
        let created = self.environment.now().max(manifest.created);
        // The clock that a handler sees does not go back at a fork.
        let created = parent.map_or(created, |parent| created.max(parent.created));
        let snapshot = Snapshot {
            format: Format::PLAIN,
            digest: Digest::of(b""),
            nonce: self.nonce(),
            session: manifest.session,
            version: 0,
            kind: SnapshotKind::Checkpoint,
            created,
            parent: parent.map(Snapshot::digest),
            objects: entries,
            log,
            last: LastStep::none(seen),
            step: None,
            trace: None,
        };
        self.put_snapshot(snapshot, nodes).await
    }

    fn new_session_id(&self) -> SessionId {
        let mut unique = [0; 10];
        self.environment.fill_random(&mut unique);
        SessionId::new(self.environment.now(), unique)
    }
}

//! Creating sessions: roots, and forks of any version of any session.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::bucket::Bucket;
use crate::entry::Draft;
use crate::error::Error;
use crate::layout;
use crate::manifest::{Manifest, Parent};
use crate::put::Put;
use crate::session_id::SessionId;
use crate::snapshot::{Ended, Format, LastStep, Snapshot, SnapshotKind};

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
        self.create(&manifest, None, &[]).await
    }

    /// Creates a session that inherits the log of `parent` as of that version, with `seed` behind
    /// it, and returns its version 0. Costs the same however long the log is.
    ///
    /// Handler and metadata are the parent session's.
    ///
    /// # Errors
    /// [`Error::EntryTooLong`], [`Error::Unknown`] or [`Error::Store`].
    pub async fn fork(&self, parent: &Snapshot, seed: &[Draft]) -> Result<Snapshot, Error> {
        parent.check_writable()?;
        let inherited = self.manifest(&parent.session).await?;
        let point =
            Parent { session: parent.session, version: parent.version, snapshot: parent.digest() };
        let child = self.new_session_id();
        let manifest = Manifest::new(child, Some(point), inherited.handler, inherited.metadata);
        // The index comes before the child's version 0: it may name a child that never came to be,
        // but never lacks one that did.
        let index = layout::children(&parent.session).join(child.to_string());
        self.put_idempotent(&index, Bytes::new()).await?;
        self.create(&manifest, Some(parent), seed).await
    }

    async fn create(
        &self,
        manifest: &Manifest,
        parent: Option<&Snapshot>,
        seed: &[Draft],
    ) -> Result<Snapshot, Error> {
        let session = manifest.session;
        let entries = self.store_drafts(seed).await?;
        let key = layout::manifest(&session);
        if let Put::Lost = self.put_if_absent(&key, &manifest.to_line()?).await? {
            return Err(Error::SessionExists { session });
        }
        let inherited = parent.map(|parent| parent.log.clone()).unwrap_or_default();
        let seen = inherited.count();
        let (mut log, mut nodes) = (inherited, Vec::new());
        log.append(entries.iter().cloned(), &mut nodes);
        let created = self.environment.now().max(manifest.created);
        // The clock that a handler sees does not go back at a fork.
        let created = parent.map_or(created, |parent| created.max(parent.created));
        let snapshot = Snapshot {
            format: Format::CURRENT,
            digest: crate::Digest::of(b""),
            nonce: self.nonce(),
            session,
            version: 0,
            kind: SnapshotKind::Checkpoint,
            created,
            parent: parent.map(Snapshot::digest),
            objects: entries,
            log,
            last: LastStep { version: 0, seen, added: 0, ended: Ended::Empty, outbox: None },
            step: None,
            trace: None,
        };
        self.put_snapshot(snapshot, nodes).await?.ok_or(Error::SessionExists { session })
    }

    fn new_session_id(&self) -> SessionId {
        let mut unique = [0; 10];
        self.environment.fill_random(&mut unique);
        SessionId::new(self.environment.now(), unique)
    }
}

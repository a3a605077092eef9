//! A session's manifest: where it comes from, which handler picks it up, and what describes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::error::Error;
use crate::layout;
use crate::session_id::SessionId;
use crate::snapshot::{Format, parse_readable};
use crate::timestamp::Timestamp;

/// The point that a session was forked from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parent {
    /// The session.
    pub session: SessionId,
    /// Its version.
    pub version: u64,
    /// The digest of that snapshot's bytes.
    pub snapshot: Digest,
}

/// What is fixed when a session is created. The field order is the persisted order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    format: Format,
    /// The session.
    pub session: SessionId,
    /// When it was created.
    pub created: Timestamp,
    /// What it was forked from; `None` for a root session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The name of the handler that picks the session up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// The component that the handler is, if the session is pinned to one: it stays with it,
    /// whatever the name comes to stand for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Digest>,
    /// Free names and values; a handler sees them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl Manifest {
    pub(crate) fn new(
        session: SessionId,
        parent: Option<Parent>,
        handler: Option<String>,
        metadata: BTreeMap<String, String>,
    ) -> Self {
        let created = session.created();
        let format = Format::PLAIN;
        Self { format, session, created, parent, handler, component: None, metadata }
    }

    /// The same, pinned to a component.
    pub(crate) fn pinned(self, component: Option<Digest>) -> Self {
        Self { component, ..self }
    }

    pub(crate) fn to_line(&self) -> Result<bytes::Bytes, Error> {
        let mut line = serde_json::to_vec(self).map_err(|source| Error::Encode { source })?;
        line.push(b'\n');
        Ok(line.into())
    }
}

impl Bucket {
    /// Reads a session's manifest; a removed session still has it.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::Corrupt`], [`Error::NewerFormat`] or [`Error::Store`].
    pub async fn manifest(&self, session: &SessionId) -> Result<Manifest, Error> {
        let key = layout::manifest(session);
        let bytes =
            self.get_file(&key).await?.ok_or(Error::SessionNotFound { session: *session })?;
        let manifest: Manifest =
            parse_readable(&bytes, &key, |manifest: &Manifest| manifest.format)?;
        if manifest.session != *session {
            return Err(Error::corrupt(&key, format!("it is of session {}", manifest.session)));
        }
        Ok(manifest)
    }
}

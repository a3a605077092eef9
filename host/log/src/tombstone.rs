//! What is left of a removed session: a last version that says so, and, once its data is collected,
//! the same in place of each version before it.
//!
//! No version's key is ever freed: put-if-absent on it stays lost for writers that stalled, and the
//! newest version is found as it is of any session.

use bytes::Bytes;
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::Error;
use crate::session_id::SessionId;
use crate::snapshot::{Format, parse_readable};
use crate::timestamp::Timestamp;

/// A version that holds nothing but that its session was removed. The field order is the persisted
/// order.
#[derive(Serialize, Deserialize)]
pub(crate) struct Tombstone {
    format: Format,
    pub(crate) session: SessionId,
    pub(crate) version: u64,
    kind: RemovedKind,
    /// The writer's nonce, in the version that removed the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nonce: Option<String>,
    /// When the session was removed.
    pub(crate) created: Timestamp,
    /// The digest of the snapshot before, in the version that removed the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<Digest>,
}

#[derive(Serialize, Deserialize)]
enum RemovedKind {
    #[serde(rename = "removed")]
    Removed,
}

impl Tombstone {
    /// The version that removes a session.
    pub(crate) fn new(
        session: SessionId,
        version: u64,
        created: Timestamp,
        nonce: String,
        parent: Digest,
    ) -> Self {
        Self { nonce: Some(nonce), parent: Some(parent), ..Self::bare(session, version, created) }
    }

    /// What stands in place of an older version.
    pub(crate) fn bare(session: SessionId, version: u64, created: Timestamp) -> Self {
        let (format, kind) = (Format::REMOVED, RemovedKind::Removed);
        Self { format, session, version, kind, nonce: None, created, parent: None }
    }

    pub(crate) fn to_line(&self) -> Result<Bytes, Error> {
        let mut line = serde_json::to_vec(self).map_err(|source| Error::Encode { source })?;
        line.push(b'\n');
        Ok(line.into())
    }

    /// Reads what may be a tombstone; `None` if it is something else.
    pub(crate) fn parse(bytes: &Bytes, key: &Path) -> Option<Self> {
        parse_readable(bytes, key, |tombstone: &Self| tombstone.format).ok()
    }
}

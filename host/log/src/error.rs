//! What can go wrong, and what a caller can do about it.

use object_store::Error as StoreError;

use crate::digest::Digest;
use crate::session_id::SessionId;

/// An error of this crate.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    #[error("`{text}` is not a digest: expected `sha256:` and 64 lower-case hexadecimal digits")]
    InvalidDigest { text: String },
    #[error("`{text}` is not a session id: expected a lower-case UUID of version 7")]
    InvalidSessionId { text: String },
    #[error("`{text}` is not a point in time in RFC 3339, such as 2026-01-31T12:00:00.000Z")]
    InvalidTimestamp { text: String },
    #[error(
        "`{name}` cannot name a session: use 1 to 128 letters, digits, `.`, `_` and `-`, not beginning or ending with a sign"
    )]
    InvalidRefName { name: String },
    #[error(
        "`{name}` cannot name a handler: use 1 to 128 letters, digits, `.`, `_` and `-`, not beginning or ending with a sign"
    )]
    InvalidHandlerName { name: String },
    #[error("not an entry: {reason}")]
    InvalidEntry { reason: String },
    #[error("an entry of {len} bytes is over the limit of {limit}: shorten its name or metadata")]
    EntryTooLong { len: usize, limit: usize },
    #[error("`{id}` cannot identify a push: use 1 to {limit} bytes of text")]
    InvalidPushId { id: String, limit: usize },
    #[error("`{id}` was pushed into session {session} before, with other content")]
    PushIdTaken { session: SessionId, id: String },
    #[error("an output cannot go to session {session}: {reason}")]
    OutboxTarget { session: SessionId, reason: &'static str },
    #[error("cannot be written as JSON")]
    Encode { source: serde_json::Error },

    #[error("session {session} is not in this bucket")]
    SessionNotFound { session: SessionId },
    #[error("session {session} was removed")]
    SessionRemoved { session: SessionId },
    #[error("session {session} has no version {version}: its newest is {tip}")]
    VersionNotFound { session: SessionId, version: u64, tip: u64 },
    #[error("object {hash} is not in this bucket")]
    ObjectNotFound { hash: Digest },
    #[error("no session is named `{name}`")]
    RefNotFound { name: String },
    #[error("this bucket has no handler `{handler}`")]
    HandlerNotFound { handler: String },

    #[error("`{key}` is damaged: {reason}")]
    Corrupt { key: String, reason: String },
    #[error(
        "`{key}` is of format {found}, newer than the {supported} that this program can read: use a newer pugmark"
    )]
    NewerFormat { key: String, found: u32, supported: u32 },
    #[error(
        "session {session} may only be extended by a program that writes format {found}; this one writes {supported}: use a newer pugmark"
    )]
    NewerWriter { session: SessionId, found: u32, supported: u32 },

    #[error(
        "another step was committed first (version {version} of session {session}): this step's outputs were dropped"
    )]
    Superseded { session: SessionId, version: u64 },
    #[error("version {version} of session {session} has outputs that are to be delivered first")]
    OutboxUndelivered { session: SessionId, version: u64 },
    #[error(
        "another run of this step has recorded what it got from outside (version {version} of session {session}): this one ends"
    )]
    TraceTaken { session: SessionId, version: u64 },
    #[error("session {session} exists already")]
    SessionExists { session: SessionId },
    #[error(
        "gave up after {attempts} attempts to append to session {session}: other writers were always first"
    )]
    Contended { session: SessionId, attempts: u32 },

    #[error(
        "whether `{key}` was written is unknown: the store did not say, and repeating the write did not settle it"
    )]
    Unknown { key: String, source: StoreError },
    #[error("`{key}` cannot be kept: a collection is deleting it, and came to no end")]
    Collecting { key: String },
    #[error("cannot {action} `{key}`")]
    Store { action: &'static str, key: String, source: StoreError },
}

/// What a caller can do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// What was asked for is not there.
    NotFound,
    /// Another writer was first; start again from the new tip.
    Conflict,
    /// What was given cannot be used.
    Invalid,
    /// Stored bytes are not what was written.
    Corrupt,
    /// The store refuses or does not answer; may pass.
    Unavailable,
    /// A limit was met.
    Limit,
    /// A write may or may not have happened; look before writing again.
    Unknown,
    /// A defect of this program.
    Internal,
}

impl Error {
    /// What a caller can do about it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::InvalidDigest { .. }
            | Self::InvalidSessionId { .. }
            | Self::InvalidTimestamp { .. }
            | Self::InvalidRefName { .. }
            | Self::InvalidHandlerName { .. }
            | Self::InvalidEntry { .. }
            | Self::InvalidPushId { .. }
            | Self::PushIdTaken { .. }
            | Self::OutboxTarget { .. }
            | Self::NewerFormat { .. }
            | Self::NewerWriter { .. } => Kind::Invalid,
            Self::EntryTooLong { .. } => Kind::Limit,
            Self::SessionNotFound { .. }
            | Self::SessionRemoved { .. }
            | Self::VersionNotFound { .. }
            | Self::ObjectNotFound { .. }
            | Self::RefNotFound { .. }
            | Self::HandlerNotFound { .. } => Kind::NotFound,
            Self::Corrupt { .. } => Kind::Corrupt,
            Self::Superseded { .. }
            | Self::TraceTaken { .. }
            | Self::OutboxUndelivered { .. }
            | Self::SessionExists { .. }
            | Self::Contended { .. } => Kind::Conflict,
            Self::Unknown { .. } => Kind::Unknown,
            Self::Store { .. } | Self::Collecting { .. } => Kind::Unavailable,
            Self::Encode { .. } => Kind::Internal,
        }
    }

    pub(crate) fn store(action: &'static str, key: impl ToString, source: StoreError) -> Self {
        Self::Store { action, key: key.to_string(), source }
    }

    pub(crate) fn corrupt(key: impl ToString, reason: impl ToString) -> Self {
        Self::Corrupt { key: key.to_string(), reason: reason.to_string() }
    }
}

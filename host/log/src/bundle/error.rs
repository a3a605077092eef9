//! What can go wrong with a bundle.

use std::io;

use crate::error::Kind;

/// An error of a bundle.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    #[error("it is not a bundle")]
    NotBundle,
    #[error("`{member}` is damaged: {reason}")]
    Damaged { member: String, reason: String },
    #[error(
        "it is of format {found}, newer than the {supported} that this program can read: use a newer pugmark"
    )]
    NewerFormat { found: u32, supported: u32 },
    #[error("with `{member}` it takes more than {limit} bytes unpacked")]
    TooLarge { member: String, limit: u64 },
    #[error("`{key}` is in the bucket already, with another content")]
    Conflict { key: String },
    #[error("cannot {action}")]
    Io { action: &'static str, source: io::Error },
    #[error(transparent)]
    Log(#[from] crate::Error),
}

impl Error {
    /// What a caller can do about it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::NotBundle | Self::NewerFormat { .. } => Kind::Invalid,
            Self::Damaged { .. } => Kind::Corrupt,
            Self::TooLarge { .. } => Kind::Limit,
            Self::Conflict { .. } => Kind::Conflict,
            Self::Io { .. } => Kind::Unavailable,
            Self::Log(error) => error.kind(),
        }
    }

    pub(super) fn damaged(member: impl ToString, reason: impl ToString) -> Self {
        Self::Damaged { member: member.to_string(), reason: reason.to_string() }
    }

    /// An error of a member's own content.
    pub(super) fn of_member(error: crate::Error) -> Self {
        match error {
            crate::Error::Corrupt { key, reason } => Self::Damaged { member: key, reason },
            other => Self::Log(other),
        }
    }
}

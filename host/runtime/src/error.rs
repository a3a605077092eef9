//! What can go wrong on the host's side of a step. How a handler failed is an outcome of its own,
//! see [`crate::Failure`].

/// An error of the host: not the handler's doing.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    #[error(transparent)]
    Log(#[from] pugmark_log::Error),
    #[error("cannot {action}")]
    Io { action: String, source: std::io::Error },
    #[error(
        "object {hash} of {size} bytes is over the limit of {limit} bytes that a sandboxed handler can read"
    )]
    ObjectTooLarge { hash: pugmark_log::Digest, size: u64, limit: u64 },
    #[error("cannot fetch `{uri}`")]
    Fetch { uri: String, source: pugmark_log::object_store::Error },
    #[error("the recorded answer to request {number} cannot be understood")]
    UnreadableEffect { number: usize },
    #[error("a host task ended unexpectedly: {reason}")]
    Internal { reason: String },
}

//! Why an event's body is not what a handler asked for.

/// A body is there, but cannot be read as what was asked for. (A body that is *not* there ends the
/// step, and is no error that a handler sees.)
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The body is stored encoded, as `gzip` or `zstd` say; this crate does not decode.
    #[error("the body of event {position} is encoded as {encoding}")]
    Encoded {
        /// Where the event stands in the log.
        position: u64,
        /// Its content encoding.
        encoding: String,
    },

    /// The body is no text.
    #[error("the body of event {position} is not UTF-8")]
    Text {
        /// Where the event stands in the log.
        position: u64,
        /// Where the text breaks.
        source: std::str::Utf8Error,
    },

    /// The body is not JSON, or not of the shape asked for.
    #[error("the body of event {position} is not the JSON that was expected")]
    Json {
        /// Where the event stands in the log.
        position: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

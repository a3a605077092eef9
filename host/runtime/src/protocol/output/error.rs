//! What can be wrong with a handler's output.

use crate::protocol::duration::DurationError;

/// A line of a handler's output that cannot be used. Nothing of the step is committed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the handler's output {kind}")]
pub struct OutputError {
    /// The line's number, from 1; blank lines count.
    pub line: usize,
    /// What is wrong with it.
    pub kind: OutputErrorKind,
}

/// What is wrong with a line; each message continues "line 3 of the handler's output".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputErrorKind {
    /// Not JSON: often a diagnostic that was meant for standard error.
    #[error("is not JSON: {reason}, in `{text}`; diagnostics belong on standard error")]
    NotJson {
        /// What the JSON reader says.
        reason: String,
        /// The line's beginning, escaped.
        text: String,
    },
    /// JSON, but not an object.
    #[error("is not a JSON object, but `{text}`; diagnostics belong on standard error")]
    NotAnObject {
        /// The line's beginning, escaped.
        text: String,
    },
    /// An object with a field twice.
    #[error("cannot be understood: {reason}")]
    Malformed {
        /// What the JSON reader says.
        reason: String,
    },
    /// A field of a wrong type.
    #[error("has a `{field}` that is not {expected}")]
    WrongType {
        /// The field's name.
        field: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// Neither `data` nor `uri`.
    #[error("has neither `data` nor `uri`: exactly one of them holds the body")]
    NoBody,
    /// Both `data` and `uri`.
    #[error("has both `data` and `uri`: exactly one of them holds the body")]
    TwoBodies,
    /// A body that is not base64 in the standard alphabet, padded.
    #[error("has a `data` that is not base64: {reason}")]
    BadBase64 {
        /// What the base64 reader says.
        reason: String,
    },
    /// A pause whose `duration` cannot be slept.
    #[error("pauses with `duration` set to `{text}`: {reason}")]
    BadDuration {
        /// The duration as it was written, escaped.
        text: String,
        /// Why it cannot be slept.
        reason: DurationError,
    },
    /// A `uri` of a handler in the sandbox.
    #[error("uses `uri`, which a handler in the sandbox cannot: fetching is an effect")]
    UriInSandbox,
    /// A `session` that is no id of a session.
    #[error("has a `session` that is not a session id: `{text}`")]
    BadSession {
        /// What it is, escaped.
        text: String,
    },
    /// Both another `session` and `fork`.
    #[error("has both `fork` and another `session`: an output goes to one place")]
    TwoTargets,
    /// A pause with `fork` or another `session`.
    #[error("is a pause for another session: a handler pauses its own session only")]
    PauseElsewhere,
    /// A line over [`OutputLimits::line_bytes`](super::OutputLimits::line_bytes).
    #[error("is longer than {limit} bytes, the limit of a line")]
    LineTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// Outputs over [`OutputLimits::total_bytes`](super::OutputLimits::total_bytes).
    #[error("takes the outputs of this step past {limit} bytes, their limit in total")]
    TotalTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// More outputs than [`OutputLimits::outputs`](super::OutputLimits::outputs).
    #[error("is one output too many: a step may write {limit}")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

/// At most so many characters of a handler's text go into a message.
const EXCERPT_CHARS: usize = 80;

/// What the JSON reader says, where its place is told within the line.
pub(super) fn json_reason(source: &serde_json::Error) -> String {
    source.to_string().replace("at line 1 column", "at byte")
}

/// The beginning of what a handler wrote, safe to show on a terminal.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(EXCERPT_CHARS * 4)];
    let text = String::from_utf8_lossy(head);
    let mut excerpt: String =
        text.trim().chars().take(EXCERPT_CHARS).flat_map(char::escape_debug).collect();
    if text.trim().chars().count() > EXCERPT_CHARS || head.len() < bytes.len() {
        excerpt.push('…');
    }
    excerpt
}

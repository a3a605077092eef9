//! How a handler that is called can fail.

use std::time::Duration;

use crate::protocol::duration;
use crate::protocol::output::OutputError;

/// At most so many characters of an answer go into a message.
const EXCERPT_CHARS: usize = 300;

/// What a handler did instead of a step. Nothing was committed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// There is nobody at its address.
    #[error("cannot reach the handler `{handler}`")]
    Unreachable {
        /// As it was named, without secrets.
        handler: String,
        /// What went wrong.
        source: reqwest::Error,
    },
    /// The connection was lost before the answer was whole.
    #[error("the handler `{handler}` broke off before its answer was whole")]
    Broken {
        /// As it was named, without secrets.
        handler: String,
        /// What went wrong.
        source: reqwest::Error,
    },
    /// It answered with another status than 200.
    #[error("the handler `{handler}` answered with status {status}{}", said(text))]
    Refused {
        /// As it was named, without secrets.
        handler: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of what it said, safe to show on a terminal.
        text: String,
    },
    /// It had not answered at the end of its time.
    #[error(
        "the handler `{handler}` had not answered after {}",
        duration::format(Duration::from_millis(*.limit_ms))
    )]
    TimedOut {
        /// As it was named, without secrets.
        handler: String,
        /// The time it had, in milliseconds.
        limit_ms: u64,
    },
    /// It did not begin to serve, although its process runs.
    #[error(
        "the handler `{handler}` did not answer `GET /` within {} of its start",
        duration::format(Duration::from_millis(*.limit_ms))
    )]
    NotReady {
        /// As it was named.
        handler: String,
        /// The time it had, in milliseconds.
        limit_ms: u64,
    },
    /// It answered what cannot be used.
    #[error("the output of the handler `{handler}` cannot be used")]
    Output {
        /// As it was named, without secrets.
        handler: String,
        /// The line, and what is wrong with it.
        source: OutputError,
    },
}

impl CallFailure {
    /// An answer with another status than 200.
    pub(super) fn refused(handler: &str, status: u16, body: &[u8]) -> Self {
        let whole = String::from_utf8_lossy(body);
        let said = whole.trim();
        let mut text: String =
            said.chars().take(EXCERPT_CHARS).flat_map(char::escape_debug).collect();
        if said.chars().count() > EXCERPT_CHARS {
            text.push('…');
        }
        Self::Refused { handler: handler.to_owned(), status, text }
    }

    /// The way out, where there is one to tell.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable { .. } => Some("check the address, and whether it serves"),
            Self::Broken { .. } => None,
            Self::Refused { status: 300..=399, .. } => {
                Some("redirections are not followed: give the address that it leads to")
            }
            Self::Refused { .. } => Some("what it logs should say why"),
            Self::TimedOut { .. } => Some("give a step more time with --timeout"),
            Self::NotReady { .. } => Some(
                "with --rpc, a handler serves HTTP on the listening socket that it has as file \
                 descriptor 3; in Python: pugmark.http.serve(WSGIPugmark(handler))",
            ),
            Self::Output { .. } => {
                Some("the answer's body takes one JSON object a line, and nothing else")
            }
        }
    }
}

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_beginning_of_an_answer() {
        let failure = CallFailure::refused("h", 500, b" no\n\x1b[1mmodel\xff\n");
        assert_eq!(
            failure.to_string(),
            "the handler `h` answered with status 500: no\\n\\u{1b}[1mmodel\u{fffd}"
        );
        let failure = CallFailure::refused("h", 404, b"");
        assert_eq!(failure.to_string(), "the handler `h` answered with status 404");
        let long = CallFailure::refused("h", 500, &[b'x'; 4096]).to_string();
        assert!(long.ends_with("x…") && long.len() < 400);
    }
}

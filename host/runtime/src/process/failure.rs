//! How a subprocess handler can fail.

use std::io;
use std::time::Duration;

use crate::Error;
use crate::protocol::duration;
use crate::protocol::output::{OutputError, OutputErrorKind};

/// What a handler did instead of a step. Nothing was committed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessFailure {
    /// There is no such program, or the system would not run it.
    #[error("cannot start the handler `{program}`")]
    CannotStart {
        /// As it was named.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// It exited with another status than 0.
    #[error("the handler `{program}` exited with status {code}")]
    Exited {
        /// As it was named.
        program: String,
        /// Its exit status.
        code: i32,
    },
    /// A signal ended it.
    #[error("the handler `{program}` was ended by signal {signal}")]
    Signalled {
        /// As it was named.
        program: String,
        /// The signal's number.
        signal: i32,
    },
    /// It was still running at the end of its time, and was ended with all that it had started.
    #[error(
        "the handler `{program}` was still running after {}, and was ended with all it started",
        duration::format(Duration::from_millis(*.limit_ms))
    )]
    TimedOut {
        /// As it was named.
        program: String,
        /// The time it had, in milliseconds.
        limit_ms: u64,
    },
    /// It wrote what cannot be used; it was ended there if it had not exited.
    #[error("the output of the handler `{program}` cannot be used")]
    Output {
        /// As it was named.
        program: String,
        /// The line, and what is wrong with it.
        source: OutputError,
    },
}

impl ProcessFailure {
    /// The way out, where there is one to tell.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::CannotStart { program, source } => start_hint(program, source),
            Self::Exited { .. } => Some("what it wrote to standard error should say why"),
            Self::Signalled { signal: 9, .. } => {
                Some("the system kills with signal 9 what takes too much memory")
            }
            Self::Signalled { .. } => None,
            Self::TimedOut { .. } => Some("give a step more time with --timeout"),
            Self::Output { source, .. } => output_hint(&source.kind),
        }
    }
}

fn output_hint(kind: &OutputErrorKind) -> Option<&'static str> {
    match kind {
        OutputErrorKind::LineTooLong { .. } | OutputErrorKind::TotalTooLong { .. } => {
            Some("push a large body with `pugmark push`, or write it in several steps")
        }
        OutputErrorKind::TooMany { .. } => Some("write fewer events in a step"),
        _ => Some("standard output takes one JSON object a line, and nothing else"),
    }
}

fn start_hint(program: &str, source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        io::ErrorKind::NotFound if program.contains('/') => {
            Some("check the path; for a script, also the interpreter in its first line")
        }
        io::ErrorKind::NotFound => {
            Some("no program of this name is in PATH; a file in this directory needs a leading ./")
        }
        io::ErrorKind::PermissionDenied => {
            Some("make the file executable (chmod +x), or put its interpreter in front")
        }
        io::ErrorKind::ExecutableFileBusy => {
            Some("something still has the file open for writing; try again once it is done")
        }
        io::ErrorKind::ArgumentListTooLong => Some(
            "arguments and environment are too long for the system; session metadata is a part \
             of the environment",
        ),
        _ => None,
    }
}

/// Why a step has no outputs.
#[derive(Debug, thiserror::Error)]
pub enum ProcessStepError {
    /// The handler's doing.
    #[error(transparent)]
    Failure(#[from] ProcessFailure),
    /// The host's.
    #[error(transparent)]
    Host(#[from] Error),
}

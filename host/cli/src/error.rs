//! What a command can fail with, and its exit code.

use std::fmt::Write as _;

use pugmark_log::{Kind, SessionId};
use pugmark_runtime::StepError;
use pugmark_runtime::sandbox::LoadError;
use serde::Serialize;

use crate::output::escape_line;

/// Exit codes, as `docs/cli.md` documents them.
pub mod exit {
    /// A defect of this program.
    pub const INTERNAL: u8 = 1;
    /// Wrong arguments or unusable input.
    pub const INVALID: u8 = 2;
    /// A session, version, object, name or file that is not there.
    pub const NOT_FOUND: u8 = 3;
    /// Another writer was first.
    pub const CONFLICT: u8 = 4;
    /// Stored bytes are damaged.
    pub const CORRUPT: u8 = 5;
    /// The bucket refuses or does not answer.
    pub const UNAVAILABLE: u8 = 6;
    /// A write may or may not have happened.
    pub const UNKNOWN: u8 = 7;
    /// The handler failed.
    pub const HANDLER_FAILED: u8 = 10;
    /// The handler met a limit of time or size.
    pub const HANDLER_LIMIT: u8 = 11;
    /// The handler cannot be used at all.
    pub const HANDLER_UNUSABLE: u8 = 12;
    /// What was compared differs, and the caller asked to be told so.
    pub const DIFFERENT: u8 = 20;
    /// Nothing that was replayed differs, but not all could be replayed.
    pub const INCOMPLETE: u8 = 21;
    /// Ended by a signal whose number is added, as shells count it: 130 from the keyboard.
    pub const BY_SIGNAL: u8 = 128;
}

/// Characters of an error that are shown: a handler's own text may be of any length.
const MAX_REPORT_CHARS: usize = 4000;

/// An error of a command.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    #[error(transparent)]
    Log(#[from] pugmark_log::Error),
    #[error(transparent)]
    Runtime(#[from] pugmark_runtime::Error),
    #[error(transparent)]
    Step(#[from] StepError),
    #[error("cannot use `{path}` as a handler")]
    Load { path: String, source: LoadError },
    #[error("cannot build `{path}`: {reason}")]
    Build { path: String, reason: String, hint: Option<String> },
    #[error("cannot {action} `{path}`")]
    File { action: &'static str, path: String, source: std::io::Error },
    #[error("cannot use the bundle `{path}`")]
    Bundle { path: String, source: pugmark_log::bundle::Error },
    #[error("cannot read the context file `{path}`")]
    Context { path: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{message}")]
    Invalid { message: String, hint: Option<String> },
    #[error("{message}")]
    NotFound { message: String, hint: Option<String> },
    #[error("`{part}` is the beginning or end of {} session ids", candidates.len())]
    Ambiguous { part: String, candidates: Vec<SessionId> },
    #[error("cannot write to standard output")]
    Stdout(#[from] std::io::Error),
    #[error("cannot be written as JSON")]
    Json { source: serde_json::Error },
    #[error("ended by a signal; what was committed before it stays")]
    Interrupted { signal: u8 },
}

impl Error {
    /// An error in what the user gave, with the way out.
    pub fn invalid(message: impl Into<String>, hint: impl Into<Option<&'static str>>) -> Self {
        Self::Invalid { message: message.into(), hint: hint.into().map(str::to_owned) }
    }

    /// Something that is not there, with the way out.
    pub fn not_found(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::NotFound { message: message.into(), hint: Some(hint.into()) }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(error) => of_kind(error.kind()),
            Self::Runtime(error) | Self::Step(StepError::Host(error)) => of_runtime(error),
            Self::Step(StepError::Failed { source, .. }) => of_failure(source),
            Self::Step(StepError::Undelivered { source, .. }) => of_kind(source.kind()),
            Self::Load { source, .. } => match source.kind() {
                Kind::NotFound => exit::NOT_FOUND,
                Kind::Internal => exit::INTERNAL,
                _ => exit::HANDLER_UNUSABLE,
            },
            Self::Build { .. } => exit::HANDLER_UNUSABLE,
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                exit::NOT_FOUND
            }
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::IsADirectory => {
                exit::INVALID
            }
            Self::File { .. } | Self::Stdout(_) => exit::UNAVAILABLE,
            Self::Bundle { source, .. } => of_kind(source.kind()),
            Self::Context { .. } | Self::Invalid { .. } | Self::Ambiguous { .. } => exit::INVALID,
            Self::NotFound { .. } => exit::NOT_FOUND,
            Self::Json { .. } => exit::INTERNAL,
            Self::Interrupted { signal } => exit::BY_SIGNAL.saturating_add(*signal),
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Invalid { hint, .. } | Self::NotFound { hint, .. } | Self::Build { hint, .. } => {
                hint.clone()
            }
            Self::Log(error) | Self::Runtime(pugmark_runtime::Error::Log(error)) => {
                hint_of_log(error).map(str::to_owned)
            }
            Self::Step(StepError::Host(pugmark_runtime::Error::Log(error))) => {
                hint_of_log(error).map(str::to_owned)
            }
            Self::Context { .. } => {
                Some("mend the file, or remove it: a new one is made then".to_owned())
            }
            Self::Ambiguous { candidates, .. } => {
                let mut text = "give more digits of one of\n".to_owned();
                for id in candidates {
                    let _ = writeln!(text, "    {id}  {}", id.created());
                }
                Some(text.trim_end().to_owned())
            }
            Self::Step(StepError::Failed { source, .. }) => source.hint().map(str::to_owned),
            Self::Step(StepError::Undelivered { .. }) => Some(
                "the next `pugmark run` on the session delivers the rest, once each".to_owned(),
            ),
            _ => None,
        }
    }

    /// The message: the error and what caused it, on one line. What a guest wrote is escaped.
    pub fn message(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let message = error.to_string();
            if !text.ends_with(&message) {
                let _ = write!(text, ": {message}");
            }
            source = error.source();
        }
        // A guest's line break must not begin a line that looks like ours.
        let text = escape_line(&text);
        match text.char_indices().nth(MAX_REPORT_CHARS) {
            None => text,
            Some((end, _)) => format!("{} … ({} bytes in all)", &text[..end], text.len()),
        }
    }

    /// The error as `--json` reports it.
    pub fn view(&self) -> View {
        let exit_code = self.exit_code();
        View { error: self.message(), kind: kind_of(exit_code), exit_code, hint: self.hint() }
    }
}

/// An error as a JSON document.
#[derive(Serialize)]
pub struct View {
    /// What went wrong.
    pub error: String,
    /// What the exit code stands for.
    pub kind: &'static str,
    /// The process's exit code.
    pub exit_code: u8,
    /// The way out, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The word for an exit code.
pub fn kind_of(exit_code: u8) -> &'static str {
    match exit_code {
        exit::INVALID => "invalid",
        exit::NOT_FOUND => "not-found",
        exit::CONFLICT => "conflict",
        exit::CORRUPT => "corrupt",
        exit::UNAVAILABLE => "unavailable",
        exit::UNKNOWN => "unknown",
        exit::HANDLER_FAILED => "handler-failed",
        exit::HANDLER_LIMIT => "handler-limit",
        exit::HANDLER_UNUSABLE => "handler-unusable",
        exit::DIFFERENT => "different",
        exit::INCOMPLETE => "incomplete",
        exit::BY_SIGNAL.. => "interrupted",
        _ => "internal",
    }
}

/// What to do about an error of the bucket, where that is known.
fn hint_of_log(error: &pugmark_log::Error) -> Option<&'static str> {
    use pugmark_log::Error;
    Some(match error {
        Error::SessionNotFound { .. } => "`pugmark sessions` lists those of this bucket",
        Error::SessionRemoved { .. } => "`pugmark sessions` lists those that are there",
        Error::PushIdTaken { .. } => "give what is pushed anew an id of its own",
        Error::VersionNotFound { .. } => "`pugmark log -A` lists a session's versions",
        Error::ObjectNotFound { .. } => "`pugmark objects` lists a session's",
        Error::RefNotFound { .. } => "`pugmark refs` lists the names",
        Error::HandlerNotFound { .. } => "`pugmark handlers` lists them",
        Error::Unknown { .. } => "look at `pugmark log -A` before you do it again",
        Error::Superseded { .. } | Error::TraceTaken { .. } => {
            "another `pugmark run` is on this session; let one of them go on"
        }
        Error::Contended { .. } => "nothing was written; try again",
        Error::Store { source, .. } => return crate::stores::hint(source),
        Error::Corrupt { .. } => {
            "`pugmark verify` says what else is damaged, and what can still be read"
        }
        _ => return None,
    })
}

fn of_kind(kind: Kind) -> u8 {
    match kind {
        Kind::NotFound => exit::NOT_FOUND,
        Kind::Conflict => exit::CONFLICT,
        Kind::Invalid | Kind::Limit => exit::INVALID,
        Kind::Corrupt => exit::CORRUPT,
        Kind::Unavailable => exit::UNAVAILABLE,
        Kind::Unknown => exit::UNKNOWN,
        _ => exit::INTERNAL,
    }
}

fn of_runtime(error: &pugmark_runtime::Error) -> u8 {
    match error {
        pugmark_runtime::Error::Log(error) => of_kind(error.kind()),
        pugmark_runtime::Error::ObjectTooLarge { .. } => exit::HANDLER_LIMIT,
        pugmark_runtime::Error::Io { .. } | pugmark_runtime::Error::Fetch { .. } => {
            exit::UNAVAILABLE
        }
        _ => exit::INTERNAL,
    }
}

fn of_failure(failure: &pugmark_runtime::Failure) -> u8 {
    if failure.is_limit() {
        exit::HANDLER_LIMIT
    } else if failure.is_unusable() {
        exit::HANDLER_UNUSABLE
    } else {
        exit::HANDLER_FAILED
    }
}

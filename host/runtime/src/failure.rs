//! Why a step was not committed: what its handler did, or what kept the host from it.

use pugmark_log::SessionId;

use crate::call::CallFailure;
use crate::error::Error;
use crate::fetch::{FetchError, FetchFailure};
use crate::process::{ProcessFailure, ProcessStepError};
use crate::protocol::output::{OutputError, OutputErrorKind};
use crate::sandbox;

/// How a handler failed. Nothing was committed.
#[derive(thiserror::Error, Debug)]
pub enum Failure {
    /// A subprocess failed.
    #[error(transparent)]
    Process(#[from] ProcessFailure),
    /// A handler that is called over HTTP failed.
    #[error(transparent)]
    Call(#[from] CallFailure),
    /// A sandboxed handler failed.
    #[error(transparent)]
    Component(#[from] sandbox::Failure),
    /// The body of an output cannot be fetched.
    #[error("one of its outputs cannot be used")]
    Fetch(#[from] FetchFailure),
    /// An output names a body to be fetched, and nothing is fetched here.
    #[error("one of its outputs has a `uri`, and nothing is fetched here")]
    NothingFetched,
    /// An output is for a session that cannot take it.
    #[error("one of its outputs cannot go to session {session}: {reason}")]
    Target {
        /// The session.
        session: SessionId,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An output, with all that describes it, is longer than an entry may be.
    #[error("one of its outputs makes an entry of {len} bytes, over the limit of {limit}")]
    Entry {
        /// The entry's length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl Failure {
    /// Whether it met a limit of time or size.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Process(ProcessFailure::TimedOut { .. })
            | Self::Call(CallFailure::TimedOut { .. } | CallFailure::NotReady { .. })
            | Self::Component(sandbox::Failure::Exceeded(_))
            | Self::Fetch(FetchFailure::TooLarge { .. })
            | Self::Entry { .. } => true,
            Self::Process(ProcessFailure::Output { source, .. })
            | Self::Call(CallFailure::Output { source, .. }) => is_over_a_limit(source),
            _ => false,
        }
    }

    /// Whether it could not even be started.
    #[must_use]
    pub fn is_unusable(&self) -> bool {
        matches!(
            self,
            Self::Process(ProcessFailure::CannotStart { .. })
                | Self::Call(CallFailure::Unreachable { .. })
        )
    }

    /// Whether it answered, and its answer cannot be used.
    pub(crate) fn is_about_outputs(&self) -> bool {
        matches!(
            self,
            Self::Process(ProcessFailure::Output { .. }) | Self::Call(CallFailure::Output { .. })
        )
    }

    /// The way out, where there is one to tell.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Process(failure) => failure.hint(),
            Self::Call(failure) => failure.hint(),
            Self::Fetch(FetchFailure::NotAllowed { .. }) => {
                Some("`--allow-uri PREFIX` allows what lies under a folder or URL")
            }
            Self::Fetch(FetchFailure::TooLarge { .. }) => {
                Some("push a large body with `pugmark push`")
            }
            Self::Target { .. } => Some("`pugmark sessions` lists those of this bucket"),
            Self::Entry { .. } => Some("shorten its name or metadata; the body does not count"),
            Self::Component(_) | Self::Fetch(_) | Self::NothingFetched => None,
        }
    }
}

fn is_over_a_limit(error: &OutputError) -> bool {
    matches!(
        error.kind,
        OutputErrorKind::LineTooLong { .. }
            | OutputErrorKind::TotalTooLong { .. }
            | OutputErrorKind::TooMany { .. }
    )
}

/// Why a loop ended before the session was at rest.
#[derive(thiserror::Error, Debug)]
pub enum StepError {
    /// The handler failed.
    #[error("handler `{agent}` failed")]
    Failed {
        /// The handler's name.
        agent: String,
        /// How it failed.
        source: Failure,
    },
    /// A step was committed, and what it sends elsewhere did not arrive, or not all of it.
    #[error(
        "version {version} of session {session} is committed, but not all that it sends to other \
         sessions is delivered"
    )]
    Undelivered {
        /// The session that sends.
        session: SessionId,
        /// The version of the step's checkpoint.
        version: u64,
        /// What kept it.
        source: pugmark_log::Error,
    },
    /// The host failed, or another step was committed first.
    #[error(transparent)]
    Host(#[from] Error),
}

impl From<pugmark_log::Error> for StepError {
    fn from(error: pugmark_log::Error) -> Self {
        Self::Host(error.into())
    }
}

/// Why a handler has no outputs.
#[derive(Debug)]
pub(crate) enum InvokeError {
    /// The handler's doing.
    Failure(Failure),
    /// The host's.
    Host(Error),
}

impl InvokeError {
    /// The error of a step whose handler is called `agent`.
    pub(crate) fn of_step(self, agent: &str) -> StepError {
        match self {
            Self::Failure(source) => StepError::Failed { agent: agent.to_owned(), source },
            Self::Host(error) => error.into(),
        }
    }
}

impl From<Error> for InvokeError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

impl From<ProcessFailure> for InvokeError {
    fn from(failure: ProcessFailure) -> Self {
        Self::Failure(failure.into())
    }
}

impl From<CallFailure> for InvokeError {
    fn from(failure: CallFailure) -> Self {
        Self::Failure(failure.into())
    }
}

impl From<ProcessStepError> for InvokeError {
    fn from(error: ProcessStepError) -> Self {
        match error {
            ProcessStepError::Failure(failure) => failure.into(),
            ProcessStepError::Host(error) => Self::Host(error),
        }
    }
}

impl From<sandbox::StepError> for InvokeError {
    fn from(error: sandbox::StepError) -> Self {
        match error {
            sandbox::StepError::Failure(failure) => Self::Failure(failure.into()),
            sandbox::StepError::Host(error) => Self::Host(error),
        }
    }
}

impl From<FetchError> for InvokeError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Failure(failure) => Self::Failure(failure.into()),
            FetchError::Host(error) => Self::Host(error),
        }
    }
}

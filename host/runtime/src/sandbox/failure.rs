//! How a step ends when it does not end well.
//!
//! What a guest says of itself is carried as it is: whoever prints it escapes it.

use wasmtime::{Trap, WasmBacktrace};

use super::limits::{Exceeded, HttpExceeded, Limits};

/// Functions of a trapped guest that are named, the innermost first.
const NAMED_FRAMES: usize = 8;

/// How the engine says that a call carries more than it may.
const CALL_TOO_LARGE: &str = "fuel allocated for hostcalls has been exhausted";

/// How the engine says that there are more handles than there may be.
const TOO_MANY_HANDLES: &str = "store handle limit exceeded";

/// How a handler failed. An outcome of the step, not an error of the host; nothing is committed.
#[derive(thiserror::Error, Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It did what WebAssembly or its own language forbids.
    #[error("the handler trapped: {message}")]
    Trap {
        /// What it did and where.
        message: String,
    },
    /// It ended itself with a code that is not 0.
    #[error("the handler exited with code {code}")]
    Exit {
        /// The code.
        code: u8,
    },
    /// It answered with an error.
    #[error("the handler answered with an error: {message}")]
    Refused {
        /// The guest's own text.
        message: String,
    },
    /// It met a limit.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// What it asks of the outside is not what is recorded.
    #[error("what it asks by HTTP is not what is recorded: {difference}")]
    Diverged {
        /// Which request, and the part of it that differs.
        difference: String,
    },
    /// One of its outputs cannot be used.
    #[error("output {line} cannot be used: {message}")]
    Output {
        /// Which one, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
}

/// Why a step has no outputs.
#[derive(thiserror::Error, Debug)]
pub enum StepError {
    /// The handler failed.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The host failed: a store that does not answer, an object that does not match its hash.
    #[error(transparent)]
    Host(#[from] crate::Error),
}

impl From<Exceeded> for StepError {
    fn from(exceeded: Exceeded) -> Self {
        Self::Failure(Failure::Exceeded(exceeded))
    }
}

/// What an error that came out of a guest's call means. `abort` is why a host function ended the
/// step, if one did: that is the cause then, and `error` only how the stack was unwound.
#[must_use]
pub fn classify(error: wasmtime::Error, abort: Option<StepError>, limits: &Limits) -> StepError {
    if let Some(abort) = abort {
        return abort;
    }
    let error = match error.downcast::<Exceeded>() {
        Ok(exceeded) => return exceeded.into(),
        Err(error) => error,
    };
    let error = match error.downcast::<HttpExceeded>() {
        Ok(exceeded) => return Exceeded::from(exceeded).into(),
        Err(error) => error,
    };
    if error.is::<rustix::io::Errno>() || error.is::<std::io::Error>() {
        return Exceeded::SystemMemory { reason: error.root_cause().to_string() }.into();
    }
    // The engine has no type for these, so its words have to do; tests hold them.
    let words = error.root_cause().to_string();
    if words.ends_with(CALL_TOO_LARGE) {
        return Exceeded::Call { limit: limits.call_bytes() }.into();
    }
    if words.ends_with(TOO_MANY_HANDLES) {
        return Exceeded::Handles { limit: limits.handles }.into();
    }
    let reason = match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => return Exceeded::Time { limit_ms: limits.time_ms }.into(),
        Some(Trap::StackOverflow) => return Exceeded::Stack.into(),
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    };
    let reason = reason.strip_prefix("wasm trap: ").unwrap_or(&reason);
    let message = match place(&error) {
        Some(place) => format!("{reason}, in {place}"),
        None => reason.to_owned(),
    };
    Failure::Trap { message }.into()
}

/// Names of the functions that were running, as far as the guest has names.
fn place(error: &wasmtime::Error) -> Option<String> {
    let frames = error.downcast_ref::<WasmBacktrace>()?.frames();
    let names: Vec<&str> =
        frames.iter().filter_map(|frame| frame.func_name()).take(NAMED_FRAMES).collect();
    (!names.is_empty()).then(|| names.join(" < "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(error: wasmtime::Error, abort: Option<StepError>) -> Failure {
        match classify(error, abort, &Limits::default()) {
            StepError::Failure(failure) => failure,
            StepError::Host(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_hosts_own_reason_comes_first() {
        let abort = Some(StepError::Failure(Failure::Exit { code: 3 }));
        assert_eq!(failure(Trap::Interrupt.into(), abort), Failure::Exit { code: 3 });
    }

    #[test]
    fn limits_are_told_from_traps() {
        let limit = Exceeded::Memory { limit: 1 };
        let error = wasmtime::Error::from(limit.clone()).context("while growing");
        assert_eq!(failure(error, None), Failure::Exceeded(limit));
        let time = Failure::Exceeded(Exceeded::Time { limit_ms: 60_000 });
        assert_eq!(failure(Trap::Interrupt.into(), None), time);
        let stack = Failure::Exceeded(Exceeded::Stack);
        assert_eq!(failure(Trap::StackOverflow.into(), None), stack);
    }

    #[test]
    fn a_trap_says_what_happened() {
        let error = wasmtime::Error::from(Trap::IntegerDivisionByZero).context("outer");
        let message = "integer divide by zero".to_owned();
        assert_eq!(failure(error, None), Failure::Trap { message });
        let message = "the guest gave a bad string".to_owned();
        let error = wasmtime::Error::msg(message.clone()).context("outer");
        assert_eq!(failure(error, None), Failure::Trap { message });
    }
}

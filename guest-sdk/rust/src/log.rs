//! Diagnostics, for the person who runs the step: the sandbox's log, or standard error. Never
//! recorded, and never seen by a handler.
//!
//! ```
//! use pugmark_guest::log;
//!
//! let issue = 7;
//! log::info(format_args!("looking at issue {issue}"));
//! ```

use std::fmt::Display;

use crate::platform;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Logs what only its author wants to know.
pub fn debug(message: impl Display) {
    platform::log(Level::Debug, &message.to_string());
}

/// Logs what is going on.
pub fn info(message: impl Display) {
    platform::log(Level::Info, &message.to_string());
}

/// Logs what looks wrong.
pub fn warn(message: impl Display) {
    platform::log(Level::Warn, &message.to_string());
}

/// Logs what is wrong.
pub fn error(message: impl Display) {
    platform::log(Level::Error, &message.to_string());
}

//! Runs handlers on session logs.
//!
//! A step gives a handler the log and commits what it answers, all or nothing. Handlers are
//! subprocesses ([`process`]) or components in a sandbox ([`sandbox`]). This crate knows nothing of
//! terminals or the home directory; what it needs of the machine comes in through parameters.

pub mod endpoint;
mod error;
mod guest_io;
mod handler;
pub mod process;
pub mod protocol;
mod run;
pub mod sandbox;
mod served;
mod step;
mod step_log;

pub use error::Error;
pub use handler::{Frame, LogLine, LogSource, ObjectSource, Output};
pub use run::{Finished, Options, Watch, run};
pub use step::{Committed, Context, Failure, Handler, StepError, keep_component, step};

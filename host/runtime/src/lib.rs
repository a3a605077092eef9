//! Runs handlers on session logs.
//!
//! A step gives a handler the log and commits what it answers, all or nothing. Handlers are
//! subprocesses ([`process`]), subprocesses that stay ([`RpcHandler`]), whoever serves at an address
//! ([`RemoteHandler`]), or components in a sandbox ([`sandbox`]). This crate knows nothing of
//! terminals or the home directory; what it needs of the machine comes in through parameters.

mod call;
mod effects;
pub mod endpoint;
mod error;
mod failure;
mod fetch;
mod guest_io;
mod handler;
mod invoke;
mod kept;
mod lifecycle;
mod lines;
pub mod process;
pub mod protocol;
mod record;
mod remote;
pub mod replay;
mod rpc;
mod run;
pub mod sandbox;
mod served;
mod step;
mod step_log;
mod trace;

pub use call::CallFailure;
pub use effects::{Http, HttpError, RuleError, SecretError, SecretSource};
pub use error::Error;
pub use failure::{Failure, StepError};
pub use fetch::{FETCH_LIMIT_BYTES, FetchFailure, Fetcher, OpenStore};
pub use handler::{Frame, LogLine, LogSource, ObjectSource, Output};
pub use kept::Keeper;
pub use lifecycle::{ForkPoint, Lifecycle};
pub use remote::RemoteHandler;
pub use rpc::RpcHandler;
pub use run::{Finished, Options, Watch, run};
pub use step::{Committed, Context, Handler, keep_component, step};
pub use trace::{Span, StepSpan, Trace};

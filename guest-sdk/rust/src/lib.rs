#![doc = include_str!("../README.md")]
// What this crate must not do: decide anything for the handler, or let the two builds of one
// source see different things.

mod body;
mod decision;
mod error;
mod event;
mod handler;
#[cfg(feature = "http")]
pub mod http;
pub mod log;
mod output;
mod session;
pub mod testing;

#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod component;
#[cfg(target_family = "wasm")]
use component as platform;

#[cfg(not(target_family = "wasm"))]
mod process;
#[cfg(not(target_family = "wasm"))]
use process as platform;

pub use body::Body;
pub use decision::{Decision, Next};
pub use error::Error;
pub use event::{Event, Kind};
pub use handler::Handler;
#[doc(hidden)]
pub use handler::assert_handler;
pub use output::Output;
pub use platform::run;
pub use session::{Session, session};

/// The content type of the record that ends a handler's turn.
pub const PAUSE_CONTENT_TYPE: &str = "application/vnd.pugmark.pause+text";

//! The wire form of what subprocess and WASI handlers read and write: one JSON object a line, as
//! `docs/handler-protocol.md` specifies it.
//!
//! Bytes in, bytes out: nothing here does I/O, and nothing here knows which kind of handler is at
//! the other end.

pub mod duration;
pub mod input;
pub mod output;

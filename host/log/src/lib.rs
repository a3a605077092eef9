//! Append-only session logs on object storage.
//!
//! A [`Bucket`] holds sessions; a session is a log of [`Entry`]s, captured in numbered, immutable
//! [`Snapshot`]s, each created with put-if-absent: the only lock there is. From any version a
//! session can be forked, at the same cost however long the log.
//!
//! This crate knows nothing of handlers' insides, processes, WebAssembly or terminals. Storage sits
//! behind [`object_store::ObjectStore`]; time and randomness behind [`Environment`]. The bytes it
//! writes are specified in `docs/storage-layout.md`.

mod append;
mod arrival;
mod bucket;
pub mod bundle;
mod collect;
#[cfg(feature = "conformance")]
pub mod conformance;
mod difference;
mod digest;
mod entry;
mod environment;
mod error;
#[cfg(feature = "conformance")]
pub mod faults;
mod fork;
mod handlers;
mod last_step;
pub mod layout;
mod list;
mod manifest;
mod outbox;
mod prefix;
mod prefixed;
mod put;
mod read;
mod recorded;
mod refresh;
mod refs;
mod remove;
mod search;
mod session_id;
mod snapshot;
mod timestamp;
mod tip;
mod tombstone;
mod trace;
mod vector;
mod verify;

pub use append::{Step, StepEnd};
pub use arrival::Pushed;
pub use bucket::{Body, Bucket};
pub use collect::{Collect, Collected, GRACE, Garbage, GarbageKind, Marked};
pub use difference::Difference;
pub use digest::{Digest, Hasher};
pub use entry::{
    Attributes, Draft, Entry, Event, INLINE_LIMIT, MAX_ENTRY_LEN, Origin, PAUSE_CONTENT_TYPE,
};
pub use environment::Environment;
pub use error::{Error, Kind};
pub use handlers::HandlerVersion;
pub use last_step::{Destination, Ended, LastStep, OutboxItem};
pub use manifest::{Manifest, Parent};
pub use object_store;
pub use outbox::{Outgoing, Target};
pub use prefixed::PrefixedPages;
pub use put::NotSent;
pub use read::NodeCache;
pub use recorded::{GrowingLog, Recorded};
pub use remove::Removed;
pub use session_id::SessionId;
pub use snapshot::{Snapshot, SnapshotKind, State};
pub use timestamp::Timestamp;
pub use tip::TipLookup;
pub use vector::{FAN_OUT, Vector};
pub use verify::{Damage, Finding};

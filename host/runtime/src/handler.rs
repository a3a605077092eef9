//! What every kind of handler is given and gives back.

use std::collections::BTreeMap;

use bytes::Bytes;
use pugmark_log::{Attributes, Digest, Entry, SessionId, Target, Timestamp};

/// All that a handler can see of its step, but for the log.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The session that the step belongs to.
    pub session: SessionId,
    /// The handler's name; also its `argv[0]` in the sandbox.
    pub agent: String,
    /// From the session's manifest.
    pub metadata: BTreeMap<String, String>,
    /// Version of the snapshot that the step began on.
    pub snapshot: u64,
    /// When that snapshot was created: the sandbox's wall clock.
    pub clock: Timestamp,
    /// Arguments after the handler's name.
    pub args: Vec<String>,
}

/// One line of the log as a handler is sent it.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Where the entry stands in the session's log, from 0.
    pub position: u64,
    /// `push`, `wake`, `start` or `fork`.
    pub event: &'static str,
    /// The entry itself.
    pub entry: Entry,
}

/// The log that a step reads, one line after the other. Blocks.
pub trait LogSource: Send {
    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// Whatever kept the store from answering: the step ends with it.
    fn next_line(&mut self) -> Result<Option<LogLine>, crate::Error>;
}

/// The bodies of the objects that the log names. Blocks.
pub trait ObjectSource: Send + Sync {
    /// The object's length in bytes; `None` if the log does not name it.
    ///
    /// # Errors
    /// Whatever kept the store from answering: the step ends with it.
    fn size(&self, hash: &Digest) -> Result<Option<u64>, crate::Error>;

    /// Up to `len` bytes from `offset`, fewer only at the object's end; `None` if the log does not
    /// name the object. Checked against the hash.
    ///
    /// # Errors
    /// Whatever kept the store from answering, or an object that does not match its hash.
    fn read(&self, hash: &Digest, offset: u64, len: u64) -> Result<Option<Bytes>, crate::Error>;
}

/// One event that a handler wants appended, to its own session or elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The body; empty while it is still to be fetched.
    pub body: Bytes,
    /// Where the host is to fetch the body before the step is committed, in place of `body`.
    pub uri: Option<String>,
    /// Where it goes, if not into the handler's own session.
    pub target: Option<Target>,
    /// What describes it. A pause is an output with the content type
    /// [`pugmark_log::PAUSE_CONTENT_TYPE`]; a sleep has `duration` in its metadata, too.
    pub attributes: Attributes,
}

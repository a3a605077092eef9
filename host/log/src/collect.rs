//! Collecting what nothing refers to any more: mark and sweep.
//!
//! All versions of all sessions are roots, and so are the components that `handlers/` names: every
//! version can be read and forked. A removed session stops being one when the grace window has
//! passed. Nothing younger than the window is touched, measured from the beginning of the run, so
//! that what a writer has just stored for a snapshot to come is safe; and a writer that meets an
//! object of half that age writes it again ([`crate::put`]). Between its last look at an object and
//! its deletion a collection announces it, and such a writer waits.

mod mark;
mod sweep;

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::bucket::Bucket;
use crate::error::Error;

pub(crate) use mark::digests_in;

/// How long what nothing refers to is kept: 24 hours.
pub const GRACE: Duration = Duration::from_hours(24);

/// How to collect.
#[derive(Clone, Copy, Debug)]
pub struct Collect {
    /// Only say what would be deleted.
    pub dry_run: bool,
}

/// What is known of a collection under way.
#[derive(Clone, Debug)]
pub enum Collected {
    /// All that is referred to was found; comes first.
    Marked(Marked),
    /// This was deleted, or in a dry run would be.
    Garbage(Garbage),
}

/// What is referred to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marked {
    /// Sessions that are there.
    pub sessions: u64,
    /// Their snapshots.
    pub snapshots: u64,
    /// The objects that these name.
    pub objects: u64,
}

/// Something that nothing refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Garbage {
    /// Its key.
    pub key: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// What it is.
    pub kind: GarbageKind,
}

/// What is collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GarbageKind {
    /// An object that no version names.
    Object,
    /// A version of a removed session; a few bytes that say so are left in its place.
    Version,
    /// The manifest of a session whose creation was cut short.
    Manifest,
    /// An index entry of a fork that never came to be.
    Child,
    /// What a collection that was cut short left behind.
    Sweep,
}

impl Bucket {
    /// This bucket with another grace window than [`GRACE`]: everybody who uses a bucket must use
    /// the same one. A writer has to be done with what it writes within half of it.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Deletes what nothing refers to and what is older than the grace window. Safe while others
    /// read and write. Ends at the first error: what cannot be read may name anything.
    ///
    /// # Errors
    /// The stream gives [`Error::Corrupt`], [`Error::NewerFormat`], [`Error::NewerWriter`] or
    /// [`Error::Store`].
    pub fn collect(&self, options: Collect) -> BoxStream<'static, Result<Collected, Error>> {
        let bucket = self.clone();
        futures::stream::once(async move {
            let marks = bucket.mark().await?;
            let first = futures::stream::iter([Ok(Collected::Marked(marks.marked()))]);
            let rest = bucket.sweep(marks, options).map_ok(Collected::Garbage);
            Ok::<_, Error>(first.chain(rest))
        })
        .try_flatten()
        .boxed()
    }

    /// The latest time, in milliseconds since the epoch, that is outside of the grace window now.
    fn horizon_ms(&self) -> i64 {
        let grace_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX);
        let horizon = self.environment.now().as_millis().saturating_sub(grace_ms);
        i64::try_from(horizon).unwrap_or(i64::MAX)
    }
}

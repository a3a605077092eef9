//! Bundles: sessions with all that they need, in one file.
//!
//! A bundle is a tar archive, compressed with zstd, whose members have the keys of a bucket; what it
//! holds, and in which order, follows from the sessions alone. So the same sessions give the same
//! bytes, and a reader knows the key of every member before it reads it: nothing in a bundle is ever
//! taken for a path. `docs/bundle-format.md` is the specification.
//!
//! Bundles come from anywhere: nothing in one is believed before it was checked, and what is held in
//! memory does not depend on what it claims.

mod contents;
mod error;
mod input;
mod open;
mod presence;
mod read;
mod references;
mod seal;
mod sink;
mod store;
mod tar;
mod unbundle;
mod write;

pub use contents::{Contents, Held};
pub use error::Error;
pub use open::{Opened, open};
pub use seal::is_bundle;
pub use unbundle::{Bulk, Unbundled, unbundle};
pub use write::{Written, write};

/// What a bundle may cost whoever opens it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all members together, unpacked. 64 GiB unless set.
    pub unpacked_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { unpacked_bytes: 64 << 30 }
    }
}

/// A member that is held in memory whole (a manifest, a snapshot, a node) may have as many bytes.
const MAX_DOCUMENT_LEN: u64 = 256 << 20;

/// A body of up to this many bytes is handed on in one piece.
const MAX_WHOLE_LEN: u64 = 8 << 20;

//! What a bucket has of a bundle's sessions already.

use crate::bucket::Bucket;
use crate::bundle::contents::Held;
use crate::bundle::error::Error;
use crate::digest::Digest;
use crate::layout;

/// How much of a session a bucket has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    /// There is no such session: its version 0 is not there.
    Absent,
    /// Up to this version, with this digest, and fewer than the bundle holds.
    Part { version: u64, digest: Digest },
    /// All that the bundle holds, perhaps more.
    Whole,
}

impl Bucket {
    /// How much of a session the bucket has.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it has another session of this id.
    pub(super) async fn presence(&self, held: &Held) -> Result<Presence, Error> {
        if !self.has_session(&held.session).await? {
            return Ok(Presence::Absent);
        }
        let tip = self.tip(&held.session, None).await?;
        let manifest_key = layout::manifest(&held.session);
        let manifest = self.get_file(&manifest_key).await?.unwrap_or_default();
        if Digest::of(&manifest) != held.manifest {
            return Err(Error::Conflict { key: manifest_key.to_string() });
        }
        if tip.version < held.version {
            return Ok(Presence::Part { version: tip.version, digest: tip.digest() });
        }
        let same = self.snapshot_named(&held.session, held.version).await?;
        // What came before it follows from its digest.
        if same.digest() == held.snapshot {
            return Ok(Presence::Whole);
        }
        let key = layout::snapshot(&held.session, held.version);
        Err(Error::Conflict { key: key.to_string() })
    }
}

//! Removing a session: one last version that says so. What the session held is collected later,
//! once nobody can be reading or forking it any more.

use bytes::Bytes;

use crate::append::ATTEMPTS;
use crate::bucket::Bucket;
use crate::error::Error;
use crate::layout;
use crate::put::Put;
use crate::session_id::SessionId;
use crate::tombstone::Tombstone;

/// A session that was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Removed {
    /// The session.
    pub session: SessionId,
    /// The version that says so, its last.
    pub version: u64,
    /// Whether it was removed before.
    pub repeated: bool,
}

impl Bucket {
    /// Removes a session, for good: nothing reads, extends or forks it from then on, with
    /// [`Error::SessionRemoved`], and listings leave it out.
    ///
    /// Its forks keep their own logs, inherited history included. Its manifest stays, so that the
    /// tree can be drawn; so do names that refer to it. What it held is freed by
    /// [`Bucket::collect`], not before the grace window has passed. An outbox is delivered first: a
    /// step's promise outlives its session.
    ///
    /// Can be cut short at any point and repeated.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`]; otherwise as [`Bucket::push`].
    pub async fn remove(&self, session: &SessionId) -> Result<Removed, Error> {
        let mut hint = None;
        for _ in 0..ATTEMPTS {
            let newest = self.newest_version(session, hint).await?;
            let version = newest.ok_or(Error::SessionNotFound { session: *session })?;
            hint = Some(version);
            let tip = match self.snapshot(session, version).await {
                Ok(Some(tip)) => tip,
                Err(Error::SessionRemoved { .. }) => {
                    self.mark_removed(session).await?;
                    return Ok(Removed { session: *session, version, repeated: true });
                }
                Ok(None) => continue,
                Err(other) => return Err(other),
            };
            tip.check_writable()?;
            let tip = self.deliver(tip).await?;
            // A step that was committed meanwhile may have sent something, too.
            if !tip.last.outbox.is_empty() {
                continue;
            }
            let version = tip.version + 1;
            let created = self.environment.now().max(tip.created);
            let last = Tombstone::new(*session, version, created, self.nonce(), tip.digest());
            let key = layout::snapshot(session, version);
            if let Put::Won = self.put_if_absent(&key, &last.to_line()?).await? {
                self.mark_removed(session).await?;
                return Ok(Removed { session: *session, version, repeated: false });
            }
        }
        Err(Error::Contended { session: *session, attempts: ATTEMPTS })
    }

    /// Makes listings leave a session out. Comes after its last version: a session that is still
    /// there is never hidden.
    pub(crate) async fn mark_removed(&self, session: &SessionId) -> Result<(), Error> {
        self.put_idempotent(&layout::removed(session), Bytes::new()).await
    }
}

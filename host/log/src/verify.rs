//! Checking all that a bucket holds against itself.
//!
//! Findings are made session by session. What is held in memory are digests of what was checked,
//! one snapshot, and one piece of an object at a time.

pub(crate) mod chain;
pub(crate) mod content;
mod names;
mod session;

use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::bucket::Bucket;
use crate::error::Error;
use crate::session_id::SessionId;
use content::Content;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Damage {
    /// Something is left over, or can be made again from the rest.
    Minor,
    /// Something that was stored cannot be read or trusted any more.
    Lost,
}

/// Something that is not as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub damage: Damage,
    /// The session that it was found in.
    pub session: Option<SessionId>,
    /// The first version that it was found in.
    pub version: Option<u64>,
    /// The key of what is damaged.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
    /// What can still be read.
    pub readable: String,
}

impl Bucket {
    /// Checks every session, object and name: all digests, the chain of snapshots and its order,
    /// that each log is what the one before, the `objects` and the step say, and all references.
    /// Each object is read once, in pieces; damage that several sessions share is found in each.
    ///
    /// Leftovers of what was cut short are no damage: [`Bucket::collect`] frees them.
    ///
    /// # Errors
    /// The stream gives [`Error::Store`] where the store does not answer, and ends there; what was
    /// written by newer programs is [`Error::NewerFormat`].
    pub fn verify(&self) -> BoxStream<'static, Result<Finding, Error>> {
        let (bucket, content) = (self.clone(), Arc::new(Content::new(self.clone())));
        let sessions = self.all_sessions().and_then({
            let (bucket, content) = (bucket.clone(), content.clone());
            move |(id, _)| {
                let (bucket, content) = (bucket.clone(), content.clone());
                async move { bucket.check_session(&content, &id).await }
            }
        });
        let names = futures::stream::once(async move { bucket.check_names(&content).await });
        sessions
            .chain(names)
            .map_ok(|findings| futures::stream::iter(findings.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    /// Checks one session as [`Bucket::verify`] checks all.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] if it is not there; otherwise as the stream of
    /// [`Bucket::verify`].
    pub async fn verify_session(&self, session: &SessionId) -> Result<Vec<Finding>, Error> {
        if self.newest_version(session, None).await?.is_none() {
            return Err(Error::SessionNotFound { session: *session });
        }
        self.check_session(&Content::new(self.clone()), session).await
    }
}

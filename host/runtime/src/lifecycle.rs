//! Lines that tell a handler where its session comes from: on request, besides the log itself.

use bytes::Bytes;
use pugmark_log::{Attributes, Bucket, Draft, Entry, Manifest, SessionId};
use serde::Serialize;

use crate::error::Error;

/// What a session's life has been, as far as a handler is told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lifecycle {
    /// Where the session's own history begins, if it was forked.
    pub fork: Option<ForkPoint>,
}

/// Where a session was forked from its parent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForkPoint {
    /// How many entries it inherited.
    pub position: u64,
    /// The session that it was forked from.
    pub parent: SessionId,
    /// That session's version.
    pub version: u64,
}

/// The body of a `fork` line; the field order is fixed.
#[derive(Serialize)]
struct ForkBody {
    kind: &'static str,
    session: SessionId,
    version: u64,
}

impl Lifecycle {
    /// Of the session that has this manifest.
    ///
    /// # Errors
    /// Whatever keeps the bucket from giving the session's version 0.
    pub async fn of(bucket: &Bucket, manifest: &Manifest) -> Result<Self, Error> {
        let Some(parent) = &manifest.parent else { return Ok(Self { fork: None }) };
        let first = bucket.snapshot_named(&manifest.session, 0).await?;
        let (position, version) = (first.last.seen, parent.version);
        Ok(Self { fork: Some(ForkPoint { position, parent: parent.session, version }) })
    }
}

/// The entry that a `start` line shows. It is no entry of the log.
pub(crate) fn start_entry() -> Result<Entry, Error> {
    json_entry(Bytes::from_static(br#"{"kind":"start"}"#))
}

/// The entry that a `fork` line shows. It is no entry of the log.
pub(crate) fn fork_entry(point: &ForkPoint) -> Result<Entry, Error> {
    let body = ForkBody { kind: "fork", session: point.parent, version: point.version };
    let body = serde_json::to_vec(&body).map_err(|source| pugmark_log::Error::Encode { source })?;
    json_entry(body.into())
}

fn json_entry(body: Bytes) -> Result<Entry, Error> {
    let content_type = Some("application/json".to_owned());
    Ok(Draft::push(body, Attributes { content_type, ..Attributes::default() }).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bodies() {
        let parent = "01923456-789a-7fff-bfff-ffffffffffff".parse().unwrap();
        let fork = fork_entry(&ForkPoint { position: 4, parent, version: 7 }).unwrap();
        assert_eq!(
            fork.data().unwrap(),
            &br#"{"kind":"fork","session":"01923456-789a-7fff-bfff-ffffffffffff","version":7}"#[..]
        );
        assert_eq!(start_entry().unwrap().data().unwrap(), &br#"{"kind":"start"}"#[..]);
    }
}

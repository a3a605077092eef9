//! The sessions whose steps led to a snapshot: its own, and those that it was forked from.

use pugmark_log::{Bucket, Kind, Manifest, Snapshot};

use super::report::{Finding, Point};
use crate::error::Error;

/// A session's part of a history.
pub(super) struct Branch {
    pub manifest: Manifest,
    /// The first version that counts.
    pub first: u64,
    /// The last one: the version that was forked, or that is replayed.
    pub last: u64,
}

/// A history, the oldest session first.
pub(super) struct Lineage {
    pub branches: Vec<Branch>,
    /// The ancestor at which it ends too soon.
    pub missing: Option<Finding>,
}

/// Finds the sessions that led to `upto`; with `from`, only its own, from that version on.
pub(super) async fn read(
    bucket: &Bucket,
    upto: &Snapshot,
    from: Option<u64>,
) -> Result<Lineage, Error> {
    let manifest = bucket.manifest(&upto.session).await?;
    let mut parent = manifest.parent.clone();
    let first = from.unwrap_or(0);
    let mut branches = vec![Branch { manifest, first, last: upto.version }];
    let mut missing = None;
    while let Some(point) = parent.filter(|_| from.is_none()) {
        let manifest = match present(bucket, &point).await {
            Ok(manifest) => manifest,
            Err(error) if error.kind() == Kind::NotFound => {
                let first = Point { session: point.session, version: point.version };
                let reason = format!("the ancestor is missing: {error}");
                missing = Some(Finding { first, steps: 0, reason });
                break;
            }
            Err(error) => return Err(error.into()),
        };
        parent = manifest.parent.clone();
        branches.push(Branch { manifest, first: 0, last: point.version });
    }
    branches.reverse();
    Ok(Lineage { branches, missing })
}

/// The manifest of an ancestor, if the version that was forked is there as well.
async fn present(
    bucket: &Bucket,
    point: &pugmark_log::Parent,
) -> Result<Manifest, pugmark_log::Error> {
    let manifest = bucket.manifest(&point.session).await?;
    bucket.snapshot_named(&point.session, point.version).await?;
    Ok(manifest)
}

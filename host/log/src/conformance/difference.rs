//! Prefixes of logs, and where two logs part.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;

use super::{Failure, Suite, draft, same};
use crate::entry::{Draft, Entry};
use crate::vector::Vector;

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let mut logs: Vec<Vector> = Vec::new();
    for count in [0, 1, 31, 32, 33, 64, 1023, 1024, 1025, 1056, 1100] {
        let tip = bucket.tip(&id, None).await?;
        let drafts: Vec<Draft> =
            (tip.log.count()..count).map(|i| draft(format!("event {i}"))).collect();
        logs.push(bucket.push(&id, None, &drafts).await?.log);
    }
    let whole = logs.last().cloned().unwrap_or_default();
    for log in &logs {
        let prefix = bucket.prefix(&whole, log.count()).await?;
        same("a prefix is the log as it was", &prefix, log)?;
        let common = bucket.common_prefix(log, &whole).await?;
        same("a log begins with what it was", &common, &log.count())?;
    }
    for at in [0, 1, 31, 32, 33, 100, 1000, 1024, 1056, 1099] {
        for length in [1, 40, 1100] {
            let mut other = bucket.prefix(&whole, at).await?;
            let mut nodes = Vec::new();
            let entry = |i| draft(format!("other {i}")).build();
            let more: Vec<Entry> = (0..length).map(entry).collect::<Result<_, _>>()?;
            other.append(more.iter().cloned(), &mut nodes);
            for node in nodes {
                bucket.put_hashed(node.hash, node.bytes).await?;
            }
            let found = bucket.difference(&whole, &other).await?;
            same("two logs share what they share", &found.common, &at)?;
            let right: Vec<Entry> = found.right.try_collect().await?;
            same("the rest of the second", &right, &more)?;
            let left: Vec<Entry> = found.left.try_collect().await?;
            same("the rest of the first", &(left.len() as u64), &(whole.count() - at))?;
            let turned = bucket.common_prefix(&other, &whole).await?;
            same("in either order", &turned, &at)?;
        }
    }
    Ok(())
}

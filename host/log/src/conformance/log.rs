//! Reading logs across the boundaries of their nodes, and finding what is damaged there.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;

use super::{Failure, Suite, draft, fails, same, verify_chain};
use crate::digest::Digest;
use crate::entry::{Attributes, Draft, Entry};
use crate::error::Error;
use crate::layout;
use crate::read::NodeCache;
use crate::session_id::SessionId;
use crate::snapshot::Snapshot;

/// Lengths around which the vector changes its shape.
const LENGTHS: [u64; 12] = [31, 32, 33, 63, 64, 1023, 1024, 1025, 1055, 1056, 1057, 2049];

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    let id = boundaries(suite).await?;
    found_by_hash(suite, &id).await?;
    damaged_nodes(suite).await
}

fn text(position: u64) -> String {
    format!("entry {position}")
}

/// Ranges read right at every length where nodes are completed.
async fn boundaries(suite: &Suite) -> Result<SessionId, Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let cache = Arc::new(NodeCache::new(20_000));
    let mut tip = bucket.tip(&id, None).await?;
    for length in LENGTHS {
        let drafts: Vec<Draft> = (tip.log.count()..length).map(|i| draft(text(i))).collect();
        tip = bucket.push(&id, Some(tip.version), &drafts).await?;
        same("the log's length", &tip.log.count(), &length)?;
        let last = length - 1;
        for range in
            [0..length, last..length, 0..1, last / 2..last, 30..34, 1022..1026, 0..u64::MAX]
        {
            let expected: Vec<String> = (range.start..range.end.min(length)).map(text).collect();
            for cache in [None, Some(cache.clone())] {
                let found = read(suite, &tip, range.clone(), cache).await?;
                same(&format!("entries {range:?} of {length}"), &found, &expected)?;
            }
        }
        for range in [0..0, length..length, length + 5..length + 9, last..last / 2] {
            same("an empty range", &read(suite, &tip, range, None).await?, &Vec::new())?;
        }
    }
    verify_chain(bucket, &id).await?;
    Ok(id)
}

async fn read(
    suite: &Suite,
    tip: &Snapshot,
    range: Range<u64>,
    cache: Option<Arc<NodeCache>>,
) -> Result<Vec<String>, Failure> {
    let entries: Vec<Entry> = suite.bucket.entries(&tip.log, range, cache).try_collect().await?;
    let text =
        |entry: &Entry| String::from_utf8_lossy(entry.data().map_or(&[], |d| d)).into_owned();
    Ok(entries.iter().map(text).collect())
}

/// A hash, or the beginning of one, leads to the newest entry that has it.
async fn found_by_hash(suite: &Suite, id: &SessionId) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let named = |name: &str, body: String| {
        Draft::push(body, Attributes { name: Some(name.into()), ..Attributes::default() })
    };
    let again = [named("again", text(7)), draft("a last one")];
    let tip = bucket.push(id, None, &again).await?;
    for (body, name) in [(text(0), None), (text(1024), None), (text(7), Some("again"))] {
        let hash = Digest::of(body.as_bytes()).hex();
        for prefix in [&hash[..], &hash[..20]] {
            let found = bucket.find_entries(&tip.log, prefix, 9).await?;
            same("one object has this hash", &found.len(), &1)?;
            same("its body", &found[0].data(), &Some(&Bytes::from(body.clone())))?;
            same("the newest entry", &found[0].attributes().name.as_deref(), &name)?;
        }
    }
    let hashes: Vec<String> = (0..2049).map(|i| Digest::of(text(i).as_bytes()).hex()).collect();
    let expected = hashes.iter().filter(|hash| hash.starts_with("12")).count();
    let found = bucket.find_entries(&tip.log, "12", usize::MAX).await?;
    same("all objects of a prefix", &found.len(), &expected)?;
    same("no more than asked for", &bucket.find_entries(&tip.log, "", 3).await?.len(), &3)?;
    let nothing = bucket.find_entries(&tip.log, &Digest::of(b"nowhere").hex(), 9).await?;
    same("a hash that no entry has", &nothing, &Vec::new())
}

/// A node that is missing, damaged or of another shape is named, and nothing of it handed out.
async fn damaged_nodes(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let nonce = bucket.nonce();
    let drafts: Vec<Draft> = (0..1030).map(|i| draft(format!("{nonce} {i}"))).collect();
    let tip = bucket.push(&id, None, &drafts).await?;
    let top = tip.log.nodes(&(0..1))[0].hash;
    let leaf_of = bucket.get_object(&top).await?;
    let leaf: Digest = serde_json::from_slice(leaf_of.split(|b| *b == b'\n').next().unwrap_or(&[]))
        .map_err(|source| Error::corrupt("the first leaf", source))?;
    for hash in [top, leaf] {
        let key = layout::object(&hash);
        let whole = bucket.get_object(&hash).await?;
        let mut flipped = whole.to_vec();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 4;
        for damaged in [Some(Bytes::from(flipped)), Some(whole.slice(1..)), None] {
            match damaged {
                Some(bytes) => bucket.store.put(&key, bytes.into()).await.map(drop)?,
                None => bucket.store.delete(&key).await?,
            }
            let corrupt = |error: &Error| matches!(error, Error::Corrupt { key: at, .. } if *at == key.to_string());
            let all = bucket.entries(&tip.log, 0..tip.log.count(), None);
            fails("a damaged node", all.try_collect::<Vec<_>>().await, corrupt)?;
            let found = read(suite, &tip, 1024..1030, None).await?.len();
            same("what does not need it can be read", &found, &6)?;
            let made = bucket.push(&id, None, &[draft("after")]).await?;
            same("and the session goes on", &made.objects.len(), &1)?;
        }
        bucket.store.put(&key, whole.into()).await?;
    }
    verify_chain(bucket, &id).await.map(drop)
}

//! Removing sessions, and collecting what is left of them.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;

use super::{Failure, Suite, draft, fails, holds, same, verify_chain};
use crate::append::{Step, StepEnd};
use crate::collect::{Collect, Collected, Garbage, GarbageKind};
use crate::digest::Digest;
use crate::entry::{Draft, Entry};
use crate::error::Error;
use crate::layout;
use crate::remove::Removed;
use crate::session_id::SessionId;
use crate::verify::{Damage, Finding};

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    removed(suite).await?;
    collected(suite).await
}

async fn is_gone(suite: &Suite, id: &SessionId, version: u64) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let gone = |error: &Error| matches!(error, Error::SessionRemoved { session } if session == id);
    for hint in [None, Some(0), Some(1), Some(version), Some(version + 1), Some(u64::MAX)] {
        fails("a removed session: tip", bucket.tip(id, hint).await, gone)?;
    }
    fails("a removed session: push", bucket.push(id, None, &[draft("x")]).await, gone)?;
    fails("a removed session: push once", bucket.push_once(id, None, "i", &[]).await, gone)?;
    fails("a removed session: wake", bucket.wake(id, None).await, gone)?;
    fails("a removed session: its last version", bucket.snapshot_named(id, version).await, gone)?;
    fails("a removed session: none later", bucket.snapshot_named(id, version + 9).await, gone)?;
    let listed: Vec<SessionId> = bucket.sessions().try_collect().await?;
    same("a removed session is not listed", &listed.contains(id), &false)?;
    let again = bucket.remove(id).await?;
    same("removing it again", &again, &Removed { session: *id, version, repeated: true })
}

/// Nothing reads, extends or forks a removed session; its forks go on.
async fn removed(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let drafts: Vec<Draft> = (0..40).map(|i| draft(format!("event {i}"))).collect();
    let basis = bucket.push(&id, None, &drafts).await?;
    let child = bucket.fork(&basis, &[draft("seed")]).await?.session;
    let tip = bucket.push(&id, None, &[draft("more")]).await?;
    let removed = bucket.remove(&id).await?;
    same(
        "a tombstone is the last version",
        &removed,
        &Removed { session: id, version: 3, repeated: false },
    )?;
    is_gone(suite, &id, 3).await?;
    let gone = |error: &Error| matches!(error, Error::SessionRemoved { session } if *session == id);
    fails("a removed session: fork", bucket.fork(&tip, &[]).await, gone)?;
    let (outputs, outbox) = (vec![draft("a")], Vec::new());
    let step = Step { basis, outputs, outbox, end: StepEnd::Pause, record: None };
    fails("a removed session: step", bucket.commit_step(&step).await, gone)?;
    let nobody = SessionId::new(bucket.environment.now(), [0x3c; 10]);
    let unknown = |error: &Error| matches!(error, Error::SessionNotFound { .. });
    fails("removing what is not there", bucket.remove(&nobody).await, unknown)?;
    same("its manifest stays", &bucket.manifest(&id).await?.session, &id)?;
    same("its index stays", &bucket.children(&id).await?, &vec![child])?;
    same("its fork can be read", &verify_chain(bucket, &child).await?.log.len(), &41)?;
    bucket.push(&child, None, &[draft("own")]).await?;
    for id in [id, child] {
        let found = bucket.verify_session(&id).await?;
        same("a removed session and its fork are in order", &found, &Vec::new())?;
    }
    Ok(())
}

async fn garbage(suite: &Suite, dry_run: bool) -> Result<Vec<Garbage>, Failure> {
    let collected: Vec<Collected> = suite.bucket.collect(Collect { dry_run }).try_collect().await?;
    let garbage = |of| match of {
        Collected::Garbage(garbage) => Some(garbage),
        Collected::Marked(_) => None,
    };
    Ok(collected.into_iter().filter_map(garbage).collect())
}

/// What only a removed session named is freed after the grace window, and nothing else.
async fn collected(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let nonce = bucket.nonce();
    let big = |name: &str| format!("{name} {nonce} ").repeat(40);
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let mut drafts: Vec<Draft> = (0..32).map(|i| draft(format!("{nonce} {i}"))).collect();
    drafts.push(draft(big("shared")));
    let point = bucket.push(&id, None, &drafts).await?;
    let child = bucket.fork(&point, &[]).await?.session;
    bucket.push(&id, None, &[draft(big("own"))]).await?;
    let orphan = bucket.put_object(big("orphan").into()).await?;
    let kept = Digest::of(big("shared").as_bytes());
    let own = Digest::of(big("own").as_bytes());
    let grace_ms = u64::try_from(bucket.grace.as_millis()).unwrap_or(u64::MAX);
    let there = |hash: Digest| async move { bucket.has_object(&hash).await };

    bucket.remove(&id).await?;
    let found = garbage(suite, false).await?;
    let ours = |garbage: &Garbage| {
        let text = &garbage.key;
        text.contains(&id.to_string())
            || [orphan, kept, own].iter().any(|hash| text.contains(&hash.hex()))
    };
    let touched = found.iter().any(ours);
    holds("nothing is freed within the grace window", !touched, || format!("{found:?}"))?;

    // The age of what is stored is measured by the store's own clock.
    let head = bucket.store.head(&layout::object(&orphan)).await?;
    let stored_ms = u64::try_from(head.last_modified.timestamp_millis()).unwrap_or(0);
    let now_ms = bucket.environment.now().as_millis();
    suite.clock.advance(stored_ms.saturating_sub(now_ms) + grace_ms + 600_000);
    let would: Vec<Garbage> = garbage(suite, true).await?.into_iter().filter(ours).collect();
    same("a dry run frees nothing", &there(orphan).await?, &true)?;
    let did: Vec<Garbage> = garbage(suite, false).await?.into_iter().filter(ours).collect();
    same("a dry run says what is freed", &sorted(&would), &sorted(&did))?;
    let kinds = |kind| did.iter().filter(|garbage| garbage.kind == kind).count();
    same("the versions of a removed session", &kinds(GarbageKind::Version), &3)?;
    same("objects", &kinds(GarbageKind::Object), &2)?;
    let objects = (there(orphan).await?, there(own).await?, there(kept).await?);
    same("what something names stays", &objects, &(false, false, true))?;
    is_gone(suite, &id, 3).await?;
    let gone = |error: &Error| matches!(error, Error::SessionRemoved { .. });
    for version in 0..=3 {
        fails("no version is left", bucket.snapshot(&id, version).await, gone)?;
    }
    let log: Vec<Entry> = verify_chain(bucket, &child).await?.log;
    same("a fork keeps what it inherited", &log.len(), &33)?;
    let again: Vec<Garbage> = garbage(suite, false).await?.into_iter().filter(ours).collect();
    same("what is freed is freed once", &again, &Vec::new())?;
    let findings: Vec<Finding> = bucket.verify_session(&id).await?;
    same("what is left is in order", &findings, &Vec::new())?;
    let findings: Vec<Finding> = bucket.verify().try_collect().await?;
    let lost = findings.iter().filter(|finding| finding.damage == Damage::Lost);
    let lost: Vec<&Finding> = lost.filter(|finding| finding.session == Some(child)).collect();
    same("nothing is lost", &lost, &Vec::new())
}

fn sorted(garbage: &[Garbage]) -> Vec<String> {
    let mut keys: Vec<String> = garbage.iter().map(|garbage| garbage.key.clone()).collect();
    keys.sort_unstable();
    keys
}

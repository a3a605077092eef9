//! Named components: versions, races, and what keeps a component in the bucket.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;

use super::{Failure, Suite, draft, fails, holds, same};
use crate::collect::{Collect, Collected};
use crate::digest::Digest;
use crate::error::Error;
use crate::handlers::HandlerVersion;
use crate::layout;

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    versions(suite).await?;
    races(suite).await?;
    pins(suite).await
}

/// An object of this run alone; stands for a component.
async fn component(suite: &Suite) -> Result<(Digest, u64), Error> {
    let text = format!("component {}", suite.bucket.nonce());
    let size = text.len() as u64;
    Ok((suite.bucket.put_object(text.into()).await?, size))
}

/// A name of this run alone.
fn name(suite: &Suite) -> String {
    format!("h-{}", suite.bucket.nonce())
}

async fn add(suite: &Suite, name: &str, (hash, size): (Digest, u64)) -> Result<u64, Error> {
    suite.bucket.add_handler(name, hash, size).await.map(|(made, _)| made.version)
}

/// A version stands for one component, always; the newest one is found.
async fn versions(suite: &Suite) -> Result<(), Failure> {
    let (bucket, name) = (&suite.bucket, name(suite));
    same(
        "a name that nobody gave stands for nothing",
        &bucket.latest_handler(&name).await?,
        &None,
    )?;
    let (one, two) = (component(suite).await?, component(suite).await?);
    same("versions begin at 1", &add(suite, &name, one).await?, &1)?;
    let again = bucket.add_handler(&name, one.0, one.1).await?;
    same("the same component is the same version", &(again.0.version, again.1), &(1, false))?;
    same("another one is the next version", &add(suite, &name, two).await?, &2)?;
    same("an older one is a version again", &add(suite, &name, one).await?, &3)?;
    let found: Vec<_> = bucket.handler_versions(&name).await?;
    let shown: Vec<_> = found.iter().map(|v| (v.version, v.component, v.size)).collect();
    same("all are listed", &shown, &vec![(1, one.0, one.1), (2, two.0, two.1), (3, one.0, one.1)])?;
    let latest = bucket.latest_handler(&name).await?;
    same("the newest is found", &latest.as_ref(), &found.last())?;
    let removed = bucket.remove_handler(&name, Some(3)).await?;
    same("what is removed is told", &removed.as_slice(), &&found[2..])?;
    let latest = bucket.latest_handler(&name).await?.map(|found| found.version);
    same("the one before it is the newest then", &latest, &Some(2))?;
    same("no number is given twice", &add(suite, &name, one).await?, &4)?;
    bucket.remove_handler(&name, None).await?;
    same("all are gone", &bucket.latest_handler(&name).await?, &None)?;
    let gone = |error: &Error| matches!(error, Error::HandlerNotFound { .. });
    fails("what is gone cannot be removed", bucket.remove_handler(&name, None).await, gone)?;
    let absent = bucket.add_handler(&name, Digest::of(b"absent"), 6).await;
    let absent_object = |error: &Error| matches!(error, Error::ObjectNotFound { .. });
    fails("what is not there cannot be named", absent, absent_object)
}

/// Of several who add at the same time, each gets a number of its own.
async fn races(suite: &Suite) -> Result<(), Failure> {
    let name = name(suite);
    let mut components = Vec::new();
    for _ in 0..6 {
        components.push(component(suite).await?);
    }
    let adding = components.iter().map(|component| add(suite, &name, *component));
    let mut numbers = futures::future::try_join_all(adding).await?;
    numbers.sort_unstable();
    same("each has a number of its own", &numbers, &(1..=6).collect::<Vec<u64>>())?;
    let listed: Vec<HandlerVersion> = suite.bucket.handler_versions(&name).await?;
    same("all are there", &listed.len(), &6)
}

/// A component stays while a name or a session's manifest stands for it, and no longer.
async fn pins(suite: &Suite) -> Result<(), Failure> {
    let (bucket, name) = (&suite.bucket, name(suite));
    let (pinned, dropped) = (component(suite).await?, component(suite).await?);
    add(suite, &name, pinned).await?;
    add(suite, &name, dropped).await?;
    let session = bucket.start_pinned(name.clone(), pinned.0, BTreeMap::new()).await?;
    let child = bucket.fork(&session, &[draft("seed")]).await?.session;
    let manifest = bucket.manifest(&child).await?;
    let found = (manifest.handler, manifest.component);
    same("a fork is pinned as its parent is", &found, &(Some(name.clone()), Some(pinned.0)))?;
    let absent = bucket.start_pinned(name.clone(), Digest::of(b"absent"), BTreeMap::new()).await;
    let absent_object = |error: &Error| matches!(error, Error::ObjectNotFound { .. });
    fails("nothing is pinned to what is not there", absent, absent_object)?;
    let grace_ms = u64::try_from(bucket.grace.as_millis()).unwrap_or(u64::MAX);
    suite.clock.advance(grace_ms * 2 + 600_000);
    let kept = collected(suite).await?;
    let touched = [pinned.0, dropped.0].iter().any(|hash| kept.contains(&key(hash)));
    holds("what a name stands for is kept", !touched, || format!("{kept:?}"))?;
    bucket.remove_handler(&name, None).await?;
    bucket.remove(&session.session).await?;
    let freed = collected(suite).await?;
    let told = (freed.contains(&key(&pinned.0)), freed.contains(&key(&dropped.0)));
    same("what a session is pinned to is kept, and nothing else", &told, &(false, true))
}

fn key(hash: &Digest) -> String {
    layout::object(hash).to_string()
}

/// Keys of what a collection deletes.
async fn collected(suite: &Suite) -> Result<Vec<String>, Error> {
    let found: Vec<Collected> =
        suite.bucket.collect(Collect { dry_run: false }).try_collect().await?;
    let garbage = found.into_iter().filter_map(|found| match found {
        Collected::Garbage(garbage) => Some(garbage.key),
        Collected::Marked(_) => None,
    });
    Ok(garbage.collect())
}

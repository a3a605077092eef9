//! Creating, naming, listing and finding sessions.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;

use super::{Failure, Suite, draft, fails, holds, same};
use crate::error::Error;
use crate::last_step::Ended;
use crate::layout;
use crate::session_id::SessionId;
use crate::snapshot::{SnapshotKind, State};

const HOUR_MS: u64 = 3_600_000;

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    start(suite).await?;
    versions(suite).await?;
    listing(suite).await?;
    finding(suite).await?;
    refs(suite).await
}

/// A new session is empty, at rest, and lies where its id says.
async fn start(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let metadata: BTreeMap<String, String> = [("team".to_owned(), "red".to_owned())].into();
    let tip = bucket.start(Some("triage".into()), metadata.clone()).await?;
    let id = tip.session;
    same("an id carries its time", &id.created(), &bucket.environment.now())?;
    same("a session starts at version 0", &tip.version, &0)?;
    same("version 0 is a checkpoint", &tip.kind, &SnapshotKind::Checkpoint)?;
    same("a new log is empty", &tip.log.count(), &0)?;
    same("a new session is at rest", &tip.state(), &State::AtRest)?;
    same("no step ended", &tip.last.ended, &Ended::Empty)?;
    same("a root follows nothing", &tip.parent, &None)?;
    let folder = layout::session(&id);
    let hour = tip.created.to_string();
    let (date, time) = hour.split_at(10);
    let parts: Vec<&str> = date.split('-').collect();
    let expected = format!(
        "sessions/year={}/month={}/day={}/hour={}/{id}",
        parts[0],
        parts[1],
        parts[2],
        &time[1..3]
    );
    same("the folder follows from the id", &folder.to_string(), &expected)?;
    let manifest = bucket.manifest(&id).await?;
    same("the manifest names the session", &manifest.session, &id)?;
    same("the manifest names the handler", &manifest.handler.as_deref(), &Some("triage"))?;
    same("the manifest holds the metadata", &manifest.metadata, &metadata)?;
    same("a root has no parent", &manifest.parent, &None)?;
    same("what is read is what was made", &bucket.tip(&id, None).await?.digest(), &tip.digest())
}

/// What is not there is not found, and said so.
async fn versions(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    for expected in 1..=9 {
        let made = bucket.push(&id, Some(expected - 1), &[draft("x")]).await?;
        same("versions are contiguous", &made.version, &expected)?;
    }
    for hint in [None, Some(0), Some(3), Some(9), Some(1000), Some(u64::MAX)] {
        let tip = bucket.tip(&id, hint).await?;
        same("the tip is the newest version, whatever the hint", &tip.version, &9)?;
    }
    let found = bucket.snapshot_named(&id, 4).await?;
    same("old versions stay", &(found.version, found.log.count()), &(4, 4))?;
    same("no later version", &bucket.snapshot(&id, 10).await?.is_none(), &true)?;
    fails(
        "a version that is not there",
        bucket.snapshot_named(&id, 10).await,
        |error| matches!(error, Error::VersionNotFound { session, version: 10, tip: 9 } if *session == id),
    )?;
    let nobody = SessionId::new(bucket.environment.now(), [0x5a; 10]);
    let unknown =
        |error: &Error| matches!(error, Error::SessionNotFound { session } if *session == nobody);
    fails("a session that is not there: tip", bucket.tip(&nobody, None).await, unknown)?;
    fails("a session that is not there: hint", bucket.tip(&nobody, Some(3)).await, unknown)?;
    fails("a session that is not there: manifest", bucket.manifest(&nobody).await, unknown)?;
    fails(
        "a session that is not there: version",
        bucket.snapshot_named(&nobody, 0).await,
        unknown,
    )?;
    fails(
        "a session that is not there: push",
        bucket.push(&nobody, None, &[draft("x")]).await,
        unknown,
    )?;
    same("its children", &bucket.children(&nobody).await?, &Vec::new())
}

/// Sessions are listed newest first, across hours, days and years.
async fn listing(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let mut made = Vec::new();
    for wait_hours in [1, 0, 0, 1, 5, 24, 24 * 31, 24 * 366, 0] {
        suite.clock.advance(wait_hours * HOUR_MS + 1);
        made.push(bucket.start(None, BTreeMap::new()).await?.session);
    }
    made.reverse();
    let listed: Vec<SessionId> = bucket.sessions().try_collect().await?;
    let ours: Vec<SessionId> = listed.iter().copied().filter(|id| made.contains(id)).collect();
    same("newest first", &ours, &made)?;
    holds("all in order", listed.is_sorted_by(|a, b| a > b), || format!("{listed:?}"))?;
    let newest: Option<SessionId> = bucket.sessions().try_next().await?;
    same("the newest comes first", &newest, &made.first().copied())
}

/// Part of an id finds the sessions that it may mean.
async fn finding(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    suite.clock.advance(HOUR_MS);
    let mut twins = [
        bucket.start(None, BTreeMap::new()).await?.session,
        bucket.start(None, BTreeMap::new()).await?.session,
    ];
    twins.sort_unstable_by(|a, b| b.cmp(a));
    let (first, second) = (twins[0].to_string(), twins[1].to_string());
    let both = bucket.find_sessions(&first[..13]).await?;
    same("an ambiguous prefix lists its candidates, newest first", &both, &twins.to_vec())?;
    for (text, id) in [(&first, twins[0]), (&second, twins[1])] {
        for part in [text.as_str(), &text[24..], &text.replace('-', ""), &text.to_uppercase()] {
            same("an id is found", &bucket.find_sessions(part).await?, &vec![id])?;
        }
    }
    for part in ["", "-", "zebra", "ffffffffffffffffffff"] {
        same("nothing is found", &bucket.find_sessions(part).await?, &Vec::new())?;
    }
    Ok(())
}

/// A name stands for one session at a time.
async fn refs(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let one = bucket.start(None, BTreeMap::new()).await?.session;
    let two = bucket.start(None, BTreeMap::new()).await?.session;
    let base = format!("conformance-{}", bucket.nonce());
    let (a, b) = (format!("{base}-a"), format!("{base}-b"));
    same("a name that is not there", &bucket.find_ref(&a).await?, &None)?;
    bucket.link(&b, &two).await?;
    bucket.link(&a, &two).await?;
    bucket.link(&a, &one).await?;
    same("a name is found", &bucket.find_ref(&a).await?, &Some(one))?;
    let ours = |all: Vec<(String, SessionId)>| -> Vec<(String, SessionId)> {
        all.into_iter().filter(|(name, _)| name.starts_with(&base)).collect()
    };
    let expected = vec![(a.clone(), one), (b.clone(), two)];
    same("names are listed in order", &ours(bucket.refs().await?), &expected)?;
    bucket.unlink(&a).await?;
    let gone = |error: &Error| matches!(error, Error::RefNotFound { name } if *name == a);
    fails("a dropped name is gone", bucket.unlink(&a).await, gone)?;
    same("the other stays", &ours(bucket.refs().await?), &vec![(b, two)])?;
    let invalid = |error: &Error| matches!(error, Error::InvalidRefName { .. });
    fails("a bad name", bucket.link("../x", &one).await, invalid)
}

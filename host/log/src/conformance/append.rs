//! Pushes, steps and wakes: what they append, and what the session then waits for.

use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt as _;
use futures::future::join_all;
use serde_json::value::RawValue;

use super::{Failure, Suite, draft, fails, holds, same, verify_chain};
use crate::append::{Step, StepEnd};
use crate::entry::{Attributes, Draft, Entry, Event, INLINE_LIMIT};
use crate::error::Error;
use crate::last_step::Ended;
use crate::snapshot::{Snapshot, SnapshotKind, State};

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    states(suite).await?;
    sleeps(suite).await?;
    rebase(suite).await?;
    large(suite).await?;
    races(suite).await
}

fn step(basis: &Snapshot, outputs: &[&str], end: StepEnd) -> Step {
    let outputs = outputs.iter().map(draft).collect();
    Step { basis: basis.clone(), outputs, outbox: Vec::new(), end, record: None }
}

fn last(tip: &Snapshot) -> (u64, u64, u64, Ended) {
    (tip.last.version, tip.last.seen, tip.last.added, tip.last.ended)
}

/// A push makes a session due; a step that adds nothing, or pauses, brings it to rest.
async fn states(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let tip = bucket.push(&id, None, &[draft("p1")]).await?;
    same("a push at rest is a checkpoint", &tip.kind, &SnapshotKind::Checkpoint)?;
    same("a push makes a session due", &tip.state(), &State::Due)?;
    same("a push is no step", &last(&tip), &(0, 0, 0, Ended::Empty))?;
    let tip = bucket.push(&id, Some(1), &[draft("p2"), draft("p3")]).await?;
    same("a push when due is provisional", &tip.kind, &SnapshotKind::Provisional)?;
    same("a version holds what it made durable", &texts(&tip.objects), &strings(&["p2", "p3"]))?;
    same("what no step saw is counted", &tip.unseen(), &3)?;
    let tip = bucket.commit_step(&step(&tip, &["a1"], StepEnd::Continue)).await?;
    same("a step is a checkpoint", &tip.kind, &SnapshotKind::Checkpoint)?;
    same("a step counts what it saw and added", &last(&tip), &(3, 3, 1, Ended::No))?;
    same("a step that may go on leaves the session due", &tip.state(), &State::Due)?;
    same("its objects are its outputs", &texts(&tip.objects), &strings(&["a1"]))?;
    let tip = bucket.commit_step(&step(&tip, &[], StepEnd::Continue)).await?;
    same("a step without outputs", &last(&tip), &(4, 4, 0, Ended::Empty))?;
    same("brings the session to rest", &tip.state(), &State::AtRest)?;
    let tip = bucket.commit_step(&step(&tip, &["a2"], StepEnd::Pause)).await?;
    same("a session at rest takes a step", &last(&tip), &(5, 4, 1, Ended::Pause))?;
    same("a pause brings it to rest", &tip.state(), &State::AtRest)?;
    let tip = bucket.push(&id, None, &[draft("p4")]).await?;
    same("a push after a pause is a checkpoint", &tip.kind, &SnapshotKind::Checkpoint)?;
    same("and makes it due", &tip.state(), &State::Due)?;
    same("the log", &log(suite, &tip).await?, &strings(&["p1", "p2", "p3", "a1", "a2", "p4"]))?;
    verify_chain(bucket, &id).await.map(drop)
}

/// A sleep ends with a push or when its time has come, and is ended once.
async fn sleeps(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let tip = bucket.push(&id, None, &[draft("p1")]).await?;
    let tip = bucket.commit_step(&step(&tip, &["z1"], StepEnd::Sleep(60_000))).await?;
    let until = tip.created.plus_millis(60_000);
    same("a sleep has its time", &tip.state(), &State::Sleeping { until })?;
    suite.clock.advance(59_999);
    let early = bucket.wake(&id, Some(tip.version)).await?;
    same("nothing wakes before its time", &early.digest(), &tip.digest())?;
    let pushed = bucket.push(&id, None, &[draft("p2")]).await?;
    same("a push into a sleep is a checkpoint", &pushed.kind, &SnapshotKind::Checkpoint)?;
    same("a push ends a sleep", &pushed.state(), &State::Due)?;
    suite.clock.advance(10);
    let none = bucket.wake(&id, None).await?;
    same("what was woken by a push is not woken again", &none.digest(), &pushed.digest())?;

    let asleep = bucket.commit_step(&step(&pushed, &["z2"], StepEnd::Sleep(1))).await?;
    let until = asleep.created.plus_millis(1);
    suite.clock.advance(5_000);
    let awake = join_all((0..3).map(|_| bucket.wake(&id, None))).await;
    let awake: Vec<Snapshot> = awake.into_iter().collect::<Result<_, _>>()?;
    let woken = &awake[0];
    same("wakers agree", &awake[1].digest(), &woken.digest())?;
    same("wakers agree", &awake[2].digest(), &woken.digest())?;
    same("a wake is a version of its own", &woken.version, &(asleep.version + 1))?;
    same("a wake is a checkpoint", &woken.kind, &SnapshotKind::Checkpoint)?;
    same("a wake makes the session due", &woken.state(), &State::Due)?;
    let text = format!("{{\"kind\":\"wake\",\"time\":\"{until}\"}}");
    same("a wake says when it was due", &texts(&woken.objects), &vec![text])?;
    same("a wake is told from a push", &woken.objects[0].event(), &Event::Wake)?;
    verify_chain(bucket, &id).await.map(drop)
}

/// A step is put before what arrived while it was under way, and loses to another step only.
async fn rebase(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let basis = bucket.push(&id, None, &[draft("p1")]).await?;
    for i in 2..40 {
        bucket.push(&id, None, &[draft(format!("p{i}"))]).await?;
    }
    let record = RawValue::from_string(r#"{"clock": "then"}"#.into()).ok();
    let committed = Step { record, ..step(&basis, &["a1", "a2"], StepEnd::Pause) };
    let tip = bucket.commit_step(&committed).await?;
    same("a step goes on top of what arrived", &tip.version, &40)?;
    same("it counts what it saw", &last(&tip), &(40, 1, 2, Ended::Pause))?;
    same("what arrived is still to be seen", &(tip.unseen(), tip.state()), &(38, State::Due))?;
    let mut expected = strings(&["p1", "a1", "a2"]);
    expected.extend((2..40).map(|i| format!("p{i}")));
    same("outputs come before what arrived", &log(suite, &tip).await?, &expected)?;
    let stored = bucket.snapshot_named(&id, 40).await?;
    let record = stored.step.as_ref().map(|record| record.get().to_owned());
    same("a record is kept verbatim", &record.as_deref(), &Some(r#"{"clock": "then"}"#))?;
    let superseded = |error: &Error| matches!(error, Error::Superseded { session, version: 40 } if *session == id);
    let late = bucket.commit_step(&step(&basis, &["b"], StepEnd::Continue)).await;
    fails("a second step on one basis", late, superseded)?;
    let tip = bucket.push(&id, None, &[draft("q")]).await?;
    same("a record belongs to its own version", &tip.step.is_none(), &true)?;
    let late = bucket.commit_step(&step(&basis, &["b"], StepEnd::Continue)).await;
    fails("a second step on one basis, after a push", late, superseded)?;
    same("nothing of it is left", &bucket.tip(&id, None).await?.digest(), &tip.digest())?;
    verify_chain(bucket, &id).await.map(drop)
}

/// Large bodies are objects; what is over the limit is refused, and nothing is committed.
async fn large(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let body = bucket.nonce().repeat(INLINE_LIMIT / 32);
    let tip = bucket.push(&id, None, &[draft(&body)]).await?;
    let entry = &tip.objects[0];
    same(
        "a large body is not inline",
        &(entry.data(), entry.size()),
        &(None, INLINE_LIMIT as u64),
    )?;
    same("it is an object", &bucket.get_object(&entry.hash()).await?.as_ref(), &body.as_bytes())?;
    let metadata = [("k".to_owned(), "v".repeat(300_000))].into();
    let long = Draft::push("x", Attributes { metadata, ..Attributes::default() });
    let result = bucket.push(&id, None, &[draft("y"), long]).await;
    let too_long = |error: &Error| matches!(error, Error::EntryTooLong { .. });
    fails("an entry over the limit", result, too_long)?;
    same("nothing is committed", &bucket.tip(&id, None).await?.digest(), &tip.digest())?;
    verify_chain(bucket, &id).await.map(drop)
}

/// Pushers who race all get their entries in, once each; of steps on one basis, one wins.
async fn races(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let basis = bucket.push(&id, None, &[draft("first")]).await?;
    let drafts: Vec<_> = (0..12).map(|i| [draft(format!("push {i}"))]).collect();
    let steps: Vec<_> =
        (0..4).map(|i| step(&basis, &[&format!("step {i}")], StepEnd::Pause)).collect();
    let pushes = join_all(drafts.iter().map(|drafts| bucket.push(&id, None, drafts)));
    let commits = join_all(steps.iter().map(|step| bucket.commit_step(step)));
    let (pushes, commits) = futures::join!(pushes, commits);
    let pushed: Vec<Snapshot> = pushes.into_iter().collect::<Result<_, _>>()?;
    let mut versions: BTreeSet<u64> = pushed.iter().map(|made| made.version).collect();
    let mut won = Vec::new();
    for (commit, i) in commits.into_iter().zip(0..) {
        match commit {
            Ok(made) => {
                versions.insert(made.version);
                won.push(format!("step {i}"));
            }
            Err(Error::Superseded { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
    same("one step wins", &won.len(), &1)?;
    same("each version has one writer", &versions, &(2..=14).collect())?;
    let tip = bucket.tip(&id, None).await?;
    let found = log(suite, &tip).await?;
    same("outputs come right after what the step saw", &found[1], &won[0])?;
    let pushed: BTreeSet<String> = (0..12).map(|i| format!("push {i}")).collect();
    same("every push is there", &found[2..].iter().cloned().collect(), &pushed)?;
    holds("and once", found.len() == 14, || format!("{found:?}"))?;
    verify_chain(bucket, &id).await.map(drop)
}

async fn log(suite: &Suite, tip: &Snapshot) -> Result<Vec<String>, Failure> {
    let entries: Vec<Entry> =
        suite.bucket.entries(&tip.log, 0..tip.log.count(), None).try_collect().await?;
    Ok(texts(&entries))
}

fn texts(entries: &[Entry]) -> Vec<String> {
    let text =
        |entry: &Entry| String::from_utf8_lossy(entry.data().map_or(&[], |d| d)).into_owned();
    entries.iter().map(text).collect()
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

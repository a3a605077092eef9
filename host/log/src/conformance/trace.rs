//! Traces of steps that are under way: carried on by pushes, ended by steps, one attempt at a time.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::TryStreamExt as _;
use serde_json::value::RawValue;

use super::{Failure, Suite, draft, fails, holds, same, verify_chain};
use crate::append::{Step, StepEnd};
use crate::entry::Entry;
use crate::error::Error;
use crate::snapshot::{Snapshot, SnapshotKind, State};

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    resumed(suite).await?;
    contended(suite).await
}

fn trace(text: &str) -> Box<RawValue> {
    RawValue::from_string(format!("{{\"effects\":[{text}]}}"))
        .expect("a JSON array of JSON values is JSON")
}

fn text_of(snapshot: &Snapshot) -> Option<String> {
    snapshot.trace.as_ref().map(|trace| trace.get().to_owned())
}

async fn pushed(suite: &Suite) -> Result<Snapshot, Failure> {
    let id = suite.bucket.start(Some("agent".into()), BTreeMap::new()).await?.session;
    Ok(suite.bucket.push(&id, None, &[draft("p1")]).await?)
}

fn step(basis: &Snapshot, outputs: &[&str]) -> Step {
    let outputs = outputs.iter().map(draft).collect();
    Step { basis: basis.clone(), outputs, outbox: Vec::new(), end: StepEnd::Pause, record: None }
}

/// A trace stays with a session whatever is pushed, until a step is committed.
async fn resumed(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let basis = pushed(suite).await?;
    let body = bucket.put_object(Bytes::from(vec![b'x'; 2000])).await?;
    let (one, two) = (
        trace("{}"),
        trace(&format!("{{}},{{\"response\":{{\"hash\":\"{body}\",\"size\":2000}}}}")),
    );
    let first = bucket.set_trace(basis.clone(), Some(one.clone())).await?;
    same("a trace adds no entry", &first.log.root(), &basis.log.root())?;
    let shape = (first.kind, first.objects.len(), first.last == basis.last, first.state());
    same("a trace is all that changes", &shape, &(SnapshotKind::Provisional, 0, true, State::Due))?;
    let push = bucket.push(&basis.session, None, &[draft("p2")]).await?;
    same("a push carries a trace on", &text_of(&push), &Some(one.get().to_owned()))?;
    let second = bucket.set_trace(first.clone(), Some(two.clone())).await?;
    same("a trace goes onto what was pushed", &second.log.count(), &2)?;
    let again = bucket.set_trace(first, Some(two.clone())).await?;
    same("the same trace is made once", &again.version, &second.version)?;
    let read = bucket.tip(&basis.session, None).await?;
    same("a trace is read back", &text_of(&read), &Some(two.get().to_owned()))?;
    let made = bucket.commit_step_on(&step(&basis, &["a1"]), second.clone()).await?;
    same("a step goes onto the version it is told", &made.version, &(second.version + 1))?;
    same("no trace survives a step", &text_of(&made), &None)?;
    let log: Vec<Entry> =
        bucket.entries(&made.log, 0..made.log.count(), None).try_collect().await?;
    let texts: Vec<&[u8]> = log.iter().map(|entry| entry.data().map_or(&[][..], |d| d)).collect();
    same("what was pushed stands behind the outputs", &texts, &vec![&b"p1"[..], b"a1", b"p2"])?;
    let late = bucket.set_trace(second, Some(one)).await;
    fails("a trace loses to a step", late, |e| matches!(e, Error::Superseded { .. }))?;
    verify_chain(bucket, &basis.session).await?;
    Ok(())
}

/// Of two attempts at a step, one records.
async fn contended(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let basis = pushed(suite).await?;
    let mine = bucket.set_trace(basis.clone(), Some(trace("1"))).await?;
    let taken = |error: &Error| matches!(error, Error::TraceTaken { .. });
    let other = bucket.set_trace(basis.clone(), Some(trace("2"))).await;
    fails("the first to record goes on", other, taken)?;
    let other = bucket.set_trace(mine.clone(), Some(trace("2"))).await?;
    fails(
        "who was replaced ends",
        bucket.set_trace(mine.clone(), Some(trace("1,1"))).await,
        taken,
    )?;
    let ended = bucket.set_trace(other, None).await?;
    same("a trace can be ended", &text_of(&ended), &None)?;
    let late = bucket.set_trace(mine, Some(trace("1,1"))).await;
    fails("a trace that was ended stays so", late, taken)?;
    let fork = bucket.set_trace(ended, Some(trace("3"))).await?;
    let child = bucket.fork(&fork, &[]).await?;
    same("a fork inherits no trace", &text_of(&child), &None)?;
    let made = bucket.commit_step(&step(&basis, &["a1"])).await?;
    holds("a step needs no trace", made.trace.is_none(), String::new)?;
    verify_chain(bucket, &basis.session).await?;
    Ok(())
}

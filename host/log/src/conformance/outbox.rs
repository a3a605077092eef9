//! Outputs for other sessions and for forks: there once, however often they are delivered.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use futures::future::join_all;

use super::{Failure, Suite, draft, fails, holds, same, verify_chain};
use crate::append::{Step, StepEnd};
use crate::entry::{Entry, INLINE_LIMIT, Origin};
use crate::error::Error;
use crate::last_step::{Destination, OutboxItem};
use crate::outbox::{Outgoing, Target};
use crate::session_id::SessionId;
use crate::snapshot::{Snapshot, SnapshotKind, State};

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    delivered(suite).await?;
    repeated(suite).await?;
    refused(suite).await?;
    target_removed(suite).await
}

fn step(basis: &Snapshot, outputs: &[&str], outbox: Vec<Outgoing>) -> Step {
    let outputs = outputs.iter().map(draft).collect();
    Step { basis: basis.clone(), outputs, outbox, end: StepEnd::Pause, record: None }
}

fn to(session: SessionId, text: &str) -> Outgoing {
    Outgoing { draft: draft(text), target: Target::Session(session) }
}

fn fork(text: &str) -> Outgoing {
    Outgoing { draft: draft(text), target: Target::Fork }
}

fn children(items: &[OutboxItem]) -> Vec<SessionId> {
    let child = |item: &OutboxItem| match item.to {
        Destination::Fork { child } => Some(child),
        Destination::Session { .. } => None,
    };
    items.iter().filter_map(child).collect()
}

async fn log(suite: &Suite, id: &SessionId) -> Result<Vec<Entry>, Failure> {
    let tip = suite.bucket.tip(id, None).await?;
    Ok(suite.bucket.entries(&tip.log, 0..tip.log.count(), None).try_collect().await?)
}

async fn texts(suite: &Suite, id: &SessionId) -> Result<Vec<String>, Failure> {
    let text =
        |entry: &Entry| String::from_utf8_lossy(entry.data().map_or(&[], |d| d)).into_owned();
    Ok(log(suite, id).await?.iter().map(text).collect())
}

/// A session with one push, and its tip.
async fn pushed(suite: &Suite, text: &str) -> Result<Snapshot, Failure> {
    let id = suite.bucket.start(Some("agent".into()), BTreeMap::new()).await?.session;
    Ok(suite.bucket.push(&id, None, &[draft(text)]).await?)
}

/// What a step sends arrives, and is not part of its own session.
async fn delivered(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let target = bucket.start(None, BTreeMap::new()).await?.session;
    let basis = pushed(suite, "p1").await?;
    let large = "large ".repeat(INLINE_LIMIT / 5);
    let outbox = vec![to(target, "t1"), fork("seed"), to(target, "t2"), to(target, &large)];
    let tip = bucket.commit_step(&step(&basis, &["a1"], outbox)).await?;
    let id = tip.session;
    same(
        "what is sent is no entry of the session",
        &texts(suite, &id).await?,
        &strings(&["p1", "a1"]),
    )?;
    same("an outbox makes a session due", &(tip.unseen(), tip.state()), &(0, State::Due))?;
    same("nothing is sent before it is delivered", &texts(suite, &target).await?.len(), &0)?;
    let early = bucket.commit_step(&step(&tip, &[], Vec::new())).await;
    let undelivered = |error: &Error| matches!(error, Error::OutboxUndelivered { .. });
    fails("no step begins before", early, undelivered)?;
    let pushed = bucket.push(&id, None, &[draft("p2")]).await?;
    same("a push carries an outbox along", &pushed.last.outbox, &tip.last.outbox)?;
    same("and is provisional", &pushed.kind, &SnapshotKind::Provisional)?;

    let cleared = bucket.deliver(pushed.clone()).await?;
    same("a delivery is over with a version of its own", &cleared.version, &(pushed.version + 1))?;
    same("that is provisional", &cleared.kind, &SnapshotKind::Provisional)?;
    same("and empty", &cleared.objects.len(), &0)?;
    same("the outbox is empty then", &cleared.last.outbox.len(), &0)?;
    let arrived = bucket.tip(&target, None).await?;
    same("what goes to one session arrives at once", &arrived.objects.len(), &3)?;
    same("in a checkpoint, as it was at rest", &arrived.kind, &SnapshotKind::Checkpoint)?;
    let found = log(suite, &target).await?;
    let origins: Vec<Option<Origin>> = found.iter().map(Entry::origin).collect();
    let version = tip.version;
    let origin = |index| Some(Origin { session: id, version, index });
    same("each says where it comes from", &origins, &vec![origin(0), origin(2), origin(3)])?;
    same(
        "a large body is an object",
        &bucket.get_object(&found[2].hash()).await?.len(),
        &large.len(),
    )?;
    let child = children(&tip.last.outbox);
    same("the fork is in the index", &bucket.children(&id).await?, &child)?;
    let manifest = bucket.manifest(&child[0]).await?;
    let point = manifest.parent.map(|parent| (parent.version, parent.snapshot));
    same("it is forked from the step's checkpoint", &point, &Some((version, tip.digest())))?;
    same("with its handler", &manifest.handler.as_deref(), &Some("agent"))?;
    same("and its seed", &texts(suite, &child[0]).await?, &strings(&["p1", "a1", "seed"]))?;
    same("which makes it due", &bucket.tip(&child[0], None).await?.state(), &State::Due)?;
    for session in [id, target, child[0]] {
        verify_chain(bucket, &session).await?;
    }
    Ok(())
}

/// Several who deliver, and one who stalled, deliver once.
async fn repeated(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let basis = pushed(suite, "p1").await?;
    let target = pushed(suite, "own").await?.session;
    let other = pushed(suite, "other").await?.session;
    let outbox = vec![to(target, "t1"), to(other, "o1"), to(target, "t2"), fork("f1"), fork("f2")];
    let tip = bucket.commit_step(&step(&basis, &[], outbox)).await?;
    let racing = join_all((0..3).map(|_| bucket.deliver(tip.clone()))).await;
    for now in racing {
        same("whoever delivers sees it delivered", &now?.last.outbox.len(), &0)?;
    }
    // The target goes on: what arrived moves behind its step's outputs, among new pushes.
    let basis = bucket.tip(&target, None).await?;
    for i in 0..40 {
        bucket.push(&target, None, &[draft(format!("later {i}"))]).await?;
    }
    bucket.commit_step(&step(&basis, &["answer"], Vec::new())).await?;
    let children = children(&tip.last.outbox);
    bucket.push(&children[0], None, &[draft("own")]).await?;
    let again = bucket.deliver(tip.clone()).await?;
    same("a delivery that wakes up late changes nothing", &again.last.outbox.len(), &0)?;
    let found = texts(suite, &target).await?;
    let (t1, t2) = (position(&found, "t1"), position(&found, "t2"));
    same("each is there once, in order", &(t1.len(), t2.len()), &(1, 1))?;
    holds("each is there once, in order", t1 < t2, || format!("{found:?}"))?;
    same("at each target", &texts(suite, &other).await?, &strings(&["other", "o1"]))?;
    let mut sorted = children.clone();
    sorted.sort_unstable();
    same("each fork is there once", &bucket.children(&tip.session).await?, &sorted)?;
    let first = texts(suite, &children[0]).await?;
    same("and goes on", &first, &strings(&["p1", "f1", "own"]))?;
    same(
        "a tip without an outbox stays",
        &bucket.deliver(again.clone()).await?.digest(),
        &again.digest(),
    )?;
    for session in [tip.session, target, other, children[0], children[1]] {
        verify_chain(bucket, &session).await?;
    }
    Ok(())
}

fn position(texts: &[String], text: &str) -> Vec<usize> {
    texts.iter().enumerate().filter(|(_, found)| *found == text).map(|(at, _)| at).collect()
}

/// What cannot arrive is refused before anything is committed.
async fn refused(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let basis = pushed(suite, "p1").await?;
    let removed = pushed(suite, "gone").await?.session;
    bucket.remove(&removed).await?;
    let nobody = SessionId::new(bucket.environment.now(), [0xa5; 10]);
    let good = bucket.start(None, BTreeMap::new()).await?.session;
    for target in [nobody, removed, basis.session] {
        let outbox = vec![to(good, "x"), to(target, "y")];
        let result = bucket.commit_step(&step(&basis, &["a"], outbox)).await;
        let refused = |error: &Error| matches!(error, Error::OutboxTarget { session, .. } if *session == target);
        fails("a target that is not there", result, refused)?;
    }
    same(
        "nothing is committed",
        &bucket.tip(&basis.session, None).await?.digest(),
        &basis.digest(),
    )?;
    same("nothing is sent", &texts(suite, &good).await?.len(), &0)
}

/// A target that is removed after the commit keeps nobody from going on.
async fn target_removed(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let basis = pushed(suite, "p1").await?;
    let (gone, there) =
        (pushed(suite, "gone").await?.session, pushed(suite, "there").await?.session);
    let outbox = vec![to(gone, "x"), to(there, "y")];
    let tip = bucket.commit_step(&step(&basis, &["a"], outbox)).await?;
    bucket.remove(&gone).await?;
    let tip = bucket.deliver(tip).await?;
    same("the session comes to rest", &tip.state(), &State::AtRest)?;
    same("the others arrive", &texts(suite, &there).await?, &strings(&["there", "y"]))?;
    verify_chain(bucket, &tip.session).await.map(drop)
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

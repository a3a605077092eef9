//! Pushes with an id: there once, however often they are pushed.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use futures::future::join_all;

use super::{Failure, Suite, draft, fails, same, verify_chain};
use crate::append::{Step, StepEnd};
use crate::arrival::Pushed;
use crate::entry::{Draft, Entry};
use crate::error::Error;

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let quoted = r#"evt "1" \ ä"#;
    let drafts = [draft("a"), draft("b")];
    let first = bucket.push_once(&id, None, quoted, &drafts).await?;
    same("a first push is made", &(first.repeated, first.snapshot.version), &(false, 1))?;
    let ids: Vec<Option<&str>> = first.snapshot.objects.iter().map(Entry::id).collect();
    same("its entries have the id", &ids, &vec![Some(quoted); 2])?;
    // In the tail, on the edge of a leaf, and deep in the log.
    for filling in [0, 29, 30, 31, 1000] {
        let more: Vec<Draft> = (0..filling).map(|i| draft(format!("{filling} {i}"))).collect();
        let tip = bucket.push(&id, None, &more).await?;
        let again = bucket.push_once(&id, Some(tip.version), quoted, &drafts).await?;
        same("a repeated push is found", &again.repeated, &true)?;
        same("and changes nothing", &again.snapshot.digest(), &tip.digest())?;
    }
    let taken =
        |error: &Error| matches!(error, Error::PushIdTaken { session, .. } if *session == id);
    for other in
        [&[draft("a")][..], &[draft("b"), draft("a")], &[draft("a"), draft("b"), draft("c")], &[]]
    {
        fails("other content", bucket.push_once(&id, None, quoted, other).await, taken)?;
    }
    for bad in [String::new(), "x".repeat(257)] {
        let invalid = |error: &Error| matches!(error, Error::InvalidPushId { .. });
        fails("no id", bucket.push_once(&id, None, &bad, &drafts).await, invalid)?;
    }
    let prefix = bucket.push_once(&id, None, "evt", &drafts).await?;
    same("another id is another push", &prefix.repeated, &false)?;
    let fork = bucket.fork(&prefix.snapshot, &[]).await?;
    let inherited = bucket.push_once(&fork.session, None, "evt", &drafts).await?;
    same("what a fork inherited was pushed", &inherited.repeated, &true)?;
    verify_chain(bucket, &id).await?;
    races(suite).await
}

/// Many who push the same, while a step is committed, push it once.
async fn races(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let id = bucket.start(None, BTreeMap::new()).await?.session;
    let basis = bucket.push(&id, None, &[draft("p")]).await?;
    let drafts: Vec<Draft> = (0..40).map(|i| draft(format!("d{i}"))).collect();
    let outputs = vec![draft("out")];
    let step = Step { basis, outputs, outbox: Vec::new(), end: StepEnd::Pause, record: None };
    let pushes = join_all((0..6).map(|_| bucket.push_once(&id, None, "same", &drafts)));
    let (pushes, step) = futures::join!(pushes, bucket.commit_step(&step));
    step?;
    let pushes: Vec<Pushed> = pushes.into_iter().collect::<Result<_, _>>()?;
    let made = pushes.iter().filter(|pushed| !pushed.repeated).count();
    same("one of those who race pushes", &made, &1)?;
    let chain = verify_chain(bucket, &id).await?;
    let entries: Vec<Entry> = chain.log.into_iter().filter(|e| e.id() == Some("same")).collect();
    same("it is there once", &entries.len(), &40)?;
    let tip = bucket.tip(&id, None).await?;
    for pushed in pushes {
        let log = bucket.entries(&pushed.snapshot.log, 0..u64::MAX, None);
        let log: Vec<Entry> = log.try_collect().await?;
        same("who is answered is answered with it", &log.ends_with(&entries), &true)?;
        same("that is not newer than the tip", &(pushed.snapshot.version <= tip.version), &true)?;
    }
    Ok(())
}

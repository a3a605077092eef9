//! Forks: they inherit, share and stand alone.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use futures::future::try_join_all;

use super::{Failure, Suite, draft, same, verify_chain};
use crate::entry::Entry;
use crate::last_step::Ended;
use crate::manifest::Parent;
use crate::snapshot::State;
use crate::vector::Vector;

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    inherits(suite).await?;
    siblings(suite).await
}

/// A fork has its parent's log as of that version, and goes its own way.
async fn inherits(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let metadata: BTreeMap<String, String> = [("k".to_owned(), "v".to_owned())].into();
    let parent = bucket.start(Some("agent".into()), metadata.clone()).await?.session;
    let drafts: Vec<_> = (0..70).map(|i| draft(format!("event {i}"))).collect();
    let point = bucket.push(&parent, None, &drafts).await?;
    let later = bucket.push(&parent, None, &[draft("after the fork")]).await?;

    let bare = bucket.fork(&point, &[]).await?;
    same("a fork shares the log", &bare.log.root(), &point.log.root())?;
    same("a fork without seed is at rest", &bare.state(), &State::AtRest)?;
    let last = (bare.last.version, bare.last.seen, bare.last.added, bare.last.ended);
    same("what it inherits counts as seen", &last, &(0, 70, 0, Ended::Empty))?;
    same("it follows the snapshot that was forked", &bare.parent, &Some(point.digest()))?;
    let manifest = bucket.manifest(&bare.session).await?;
    let from = Parent { session: parent, version: point.version, snapshot: point.digest() };
    same("its manifest names where it comes from", &manifest.parent, &Some(from))?;
    same("it keeps the handler", &manifest.handler.as_deref(), &Some("agent"))?;
    same("it keeps the metadata", &manifest.metadata, &metadata)?;

    let seeded = bucket.fork(&point, &[draft("seed")]).await?;
    same("a seed makes it due", &seeded.state(), &State::Due)?;
    let mut expected = bodies(suite, &point.log).await?;
    expected.push("seed".into());
    same("the seed comes last", &bodies(suite, &seeded.log).await?, &expected)?;
    let pushed = bucket.push(&seeded.session, Some(0), &[draft("own")]).await?;
    expected.push("own".into());
    same("a fork goes on by itself", &bodies(suite, &pushed.log).await?, &expected)?;
    same("and its parent stays", &bucket.tip(&parent, None).await?.digest(), &later.digest())?;

    let grandchild = bucket.fork(&pushed, &[]).await?;
    same("a fork can be forked", &grandchild.log.root(), &pushed.log.root())?;
    for session in [parent, bare.session, seeded.session, grandchild.session] {
        verify_chain(bucket, &session).await?;
    }
    Ok(())
}

/// The index of children names all forks, and only of that session.
async fn siblings(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let parent = bucket.start(None, BTreeMap::new()).await?;
    let seeds: Vec<_> = (0..5).map(|i| [draft(format!("seed {i}"))]).collect();
    let forks = try_join_all(seeds.iter().map(|seed| bucket.fork(&parent, seed))).await?;
    let mut expected: Vec<_> = forks.iter().map(|fork| fork.session).collect();
    expected.sort_unstable();
    same("children are listed, oldest first", &bucket.children(&parent.session).await?, &expected)?;
    let own = bucket.children(&expected[0]).await?;
    same("a fork's children are its own", &own, &Vec::new())
}

async fn bodies(suite: &Suite, log: &Vector) -> Result<Vec<String>, Failure> {
    let entries: Vec<Entry> = suite.bucket.entries(log, 0..log.count(), None).try_collect().await?;
    let text =
        |entry: &Entry| String::from_utf8_lossy(entry.data().map_or(&[], |d| d)).into_owned();
    Ok(entries.iter().map(text).collect())
}

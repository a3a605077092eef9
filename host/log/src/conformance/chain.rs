//! A session's whole chain of snapshots, checked against itself.

use std::collections::HashSet;

use futures::TryStreamExt as _;

use super::{Failure, holds, same};
use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::entry::Entry;
use crate::error::Error;
use crate::layout;
use crate::manifest::Manifest;
use crate::session_id::SessionId;
use crate::snapshot::Snapshot;
use crate::trace::answers_in;
use crate::verify::chain::Broken;
use crate::verify::content::Content;

/// All of a session, found to be in order.
#[derive(Debug)]
pub struct Chain {
    /// Where the session comes from.
    pub manifest: Manifest,
    /// Its snapshots, from version 0.
    pub snapshots: Vec<Snapshot>,
    /// The lengths of the snapshots' bytes.
    pub lens: Vec<usize>,
    /// The log that it began with.
    pub inherited: Vec<Entry>,
    /// Its whole log.
    pub log: Vec<Entry>,
}

/// Reads a session's whole chain back and checks that
///
/// - versions are contiguous, each names the digest of the bytes of the one before, no nonce occurs
///   twice, and `created` never goes back;
/// - a push, a wake, a step, the clearing of an outbox or a trace made each of them: the log is what the
///   version before says, with its `objects` appended, or, for a step, put behind what the step saw;
/// - a step saw all that the step before it saw and added, and waited for its outbox; kinds are what
///   the chain says;
/// - every node and every object that is named is there, and is what its name says.
///
/// These are the rules of [`Bucket::verify`]; here the first that is broken is an error.
///
/// # Errors
/// [`Failure::Broken`] for what is not so; the others if a request fails.
pub async fn verify_chain(bucket: &Bucket, session: &SessionId) -> Result<Chain, Failure> {
    let manifest = bucket.manifest(session).await?;
    let (mut snapshots, mut lens) = (Vec::<Snapshot>::new(), Vec::new());
    let mut nonces = HashSet::new();
    let content = Content::new(bucket.clone());
    let versions = bucket.versions(session).await?;
    let expected: Vec<u64> = (0..versions.len() as u64).collect();
    same("versions are contiguous from 0", &versions, &expected)?;
    for version in versions {
        let (snapshot, len) = read(bucket, session, version).await?;
        let broken = match snapshots.last() {
            None => bucket.check_first(&manifest, &snapshot).await?,
            Some(before) => bucket.check_next(before, &snapshot).await?,
        };
        whole(version, broken)?;
        let new = nonces.insert(snapshot.nonce().to_owned());
        holds("no nonce occurs twice", new, || format!("version {version}"))?;
        let mut flaws = content.check_log(&snapshot.log).await?;
        flaws.extend(content.check_entries(&snapshot.objects).await?);
        for item in &snapshot.last.outbox {
            flaws.extend(content.check_entries(std::slice::from_ref(&item.entry)).await?);
        }
        for record in [&snapshot.step, &snapshot.trace].into_iter().flatten() {
            for (hash, size) in answers_in(record) {
                flaws.extend(content.check_object(hash, size).await?);
            }
        }
        if let Some(flaw) = flaws.first() {
            holds("what is named is there", false, || format!("{}: {}", flaw.key, flaw.problem))?;
        }
        snapshots.push(snapshot);
        lens.push(len);
    }
    let (Some(first), Some(tip)) = (snapshots.first(), snapshots.last()) else {
        return Err(Error::SessionNotFound { session: *session }.into());
    };
    let inherited = bucket.entries(&first.log, 0..first.last.seen, None).try_collect().await?;
    let log = bucket.entries(&tip.log, 0..tip.log.count(), None).try_collect().await?;
    Ok(Chain { manifest, snapshots, lens, inherited, log })
}

fn whole(version: u64, broken: Broken) -> Result<(), Failure> {
    let rule = broken.0.into_iter().next();
    rule.map_or(Ok(()), |rule| Err(Failure::Broken { rule, reason: format!("version {version}") }))
}

async fn read(
    bucket: &Bucket,
    session: &SessionId,
    version: u64,
) -> Result<(Snapshot, usize), Failure> {
    let key = layout::snapshot(session, version);
    let missing = || Error::corrupt(&key, "it is listed, but not there");
    let bytes = bucket.get_file(&key).await?.ok_or_else(missing)?;
    let snapshot = Snapshot::parse(&bytes, *session, version)?;
    same("a snapshot's digest is that of its bytes", &snapshot.digest(), &Digest::of(&bytes))?;
    Ok((snapshot, bytes.len()))
}

//! Reads the versions of a session, in order, many at a time.

use std::ops::RangeInclusive;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{Bucket, Recorded, SessionId, layout};
use tokio::sync::mpsc::{self, Receiver};

use super::Shared;
use crate::error::Error;

/// How many versions are read at a time.
const PARALLEL: usize = 64;
/// How many versions a thread reads before it hands them on, and how many such threads there are for
/// each guest that runs at a time.
const BATCH: usize = 64;
const THREADS_PER_JOB: usize = 2;

/// The versions in `range`, in order.
pub(super) fn versions(
    shared: &Arc<Shared>,
    session: SessionId,
    range: RangeInclusive<u64>,
) -> BoxStream<'static, Result<Recorded, Error>> {
    let bucket = shared.bucket.clone();
    if shared.options.local {
        let threads = shared.options.jobs.get().saturating_mul(THREADS_PER_JOB);
        return by_threads(&bucket, session, &range, threads);
    }
    // Each is parsed in a task of its own.
    futures::stream::iter(range)
        .map(move |version| {
            let bucket = bucket.clone();
            tokio::spawn(async move { read(&bucket, &session, version).await })
        })
        .buffered(PARALLEL)
        .map(|read| read.map_err(|join| Error::Internal { reason: join.to_string() })?)
        .boxed()
}

/// Reads on threads outside the runtime: there, a local store reads at once where it would
/// otherwise ask another thread twice for each version. The threads take turns, a batch each.
fn by_threads(
    bucket: &Bucket,
    session: SessionId,
    range: &RangeInclusive<u64>,
    threads: usize,
) -> BoxStream<'static, Result<Recorded, Error>> {
    let batches = range.clone().step_by(BATCH).count();
    let threads = threads.min(batches);
    let every = threads.saturating_mul(BATCH);
    let readers = (0..threads).map(|index| {
        let starts = range.clone().skip(index * BATCH).step_by(every);
        start_reader(bucket.clone(), session, starts, *range.end())
    });
    let readers = match readers.collect::<Result<Vec<_>, _>>() {
        Ok(readers) => readers,
        Err(error) => return futures::stream::once(async { Err(error) }).boxed(),
    };
    let turns = (0..threads).cycle().take(batches);
    futures::stream::unfold((readers, turns), |(mut readers, mut turns)| async move {
        let batch = readers[turns.next()?].recv().await.unwrap_or_else(|| {
            Err(Error::Internal { reason: "a reading thread panicked".to_owned() })
        });
        Some((batch, (readers, turns)))
    })
    .map_ok(|batch| futures::stream::iter(batch.into_iter().map(Ok)))
    .try_flatten()
    .boxed()
}

/// Starts a thread that reads the batches of versions that begin at `starts`, one ahead.
fn start_reader(
    bucket: Bucket,
    session: SessionId,
    starts: impl Iterator<Item = u64> + Send + 'static,
    last: u64,
) -> Result<Receiver<Result<Vec<Recorded>, Error>>, Error> {
    let (sender, batches) = mpsc::channel(1);
    let reader = std::thread::Builder::new().name("pugmark-reader".to_owned()).spawn(move || {
        for start in starts {
            let versions = futures::stream::iter((start..=last).take(BATCH));
            let batch = versions.then(|version| read(&bucket, &session, version)).try_collect();
            // Nobody waits for it any more where an error has ended the replay.
            if sender.blocking_send(futures::executor::block_on(batch)).is_err() {
                return;
            }
        }
    });
    let failed = |source| Error::Io { action: "start a thread that reads".to_owned(), source };
    reader.map(|_| batches).map_err(failed)
}

async fn read(bucket: &Bucket, session: &SessionId, version: u64) -> Result<Recorded, Error> {
    let recorded = bucket.recorded(session, version).await?;
    recorded.ok_or_else(|| {
        let key = layout::snapshot(session, version).to_string();
        let reason = "there are later versions, and it is missing".to_owned();
        pugmark_log::Error::Corrupt { key, reason }.into()
    })
}

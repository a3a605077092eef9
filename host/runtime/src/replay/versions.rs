//! Reads the versions of a session, in order, many at a time.

use std::ops::RangeInclusive;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{Bucket, Recorded, SessionId, layout};
use tokio::sync::oneshot;

use super::Shared;
use crate::error::Error;

/// How many versions are read at a time.
const PARALLEL: usize = 64;
/// How many versions one thread reads, and how many such threads there are at a time for each guest.
const BATCH: u64 = 64;
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
        return by_threads(bucket, session, range, threads);
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
/// otherwise ask another thread twice for each version.
fn by_threads(
    bucket: Bucket,
    session: SessionId,
    range: RangeInclusive<u64>,
    threads: usize,
) -> BoxStream<'static, Result<Recorded, Error>> {
    let (first, last) = range.into_inner();
    let batches = (first..=last).step_by(usize::try_from(BATCH).unwrap_or(usize::MAX));
    futures::stream::iter(batches)
        .map(move |start| {
            let bucket = bucket.clone();
            let end = last.min(start.saturating_add(BATCH - 1));
            on_a_thread(move || {
                futures::executor::block_on(async {
                    let mut batch = Vec::new();
                    for version in start..=end {
                        batch.push(read(&bucket, &session, version).await?);
                    }
                    Ok(batch)
                })
            })
        })
        .buffered(threads)
        .map_ok(|batch| futures::stream::iter(batch.into_iter().map(Ok)))
        .try_flatten()
        .boxed()
}

async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (sender, answer) = oneshot::channel();
    std::thread::Builder::new()
        .name("pugmark-reader".to_owned())
        .spawn(move || {
            // Nobody waits for it any more where an error has ended the replay.
            let _ = sender.send(work());
        })
        .map_err(|source| Error::Io { action: "start a thread that reads".to_owned(), source })?;
    answer.await.map_err(|_| Error::Internal { reason: "a reading thread panicked".to_owned() })?
}

async fn read(bucket: &Bucket, session: &SessionId, version: u64) -> Result<Recorded, Error> {
    let recorded = bucket.recorded(session, version).await?;
    recorded.ok_or_else(|| {
        let key = layout::snapshot(session, version).to_string();
        let reason = "there are later versions, and it is missing".to_owned();
        pugmark_log::Error::Corrupt { key, reason }.into()
    })
}

//! Re-executes the recorded steps of a session, and compares what comes out with what is recorded.
//!
//! `lineage` finds the sessions that a log comes from; `plan` reads their versions, checks that the
//! records fit the log, and hands each step to the worker of its group: the steps that one instance
//! of a handler could have made. `warm` keeps such an instance and folds each entry once, which is
//! speculative; `cold` runs a step exactly as it was run. `answer` compares, `report` collects.
//!
//! Nothing is written to the bucket, nothing is fetched from anywhere else, and no process is
//! started but those that the caller gives.

mod answer;
mod cold;
mod components;
mod feed;
mod group;
mod lineage;
mod plan;
mod report;
mod step_record;
mod tally;
#[cfg(test)]
mod tests;
mod versions;
mod warm;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pugmark_log::{Bucket, NodeCache, Snapshot};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use answer::{Answer, Line};
pub use report::{Difference, Finding, Outcome, Point, Report};

use crate::error::Error;
use crate::process::ProcessSpec;
use crate::sandbox::{Component, Limits, Sandbox};
use components::Components;
use tally::Tally;

/// Bytes of the log that are kept for all that read it.
const CACHE_BYTES: usize = 64 << 20;

/// What is replayed, and how.
pub struct Options {
    /// Only the session's own steps from this version on. Default: all, inherited ones too.
    pub from: Option<u64>,
    /// Only the steps of the handler with this name. Default: of all.
    pub handler: Option<String>,
    /// A fresh instance for every step. Default: an instance is kept, and its answer counts where
    /// it is the recorded one.
    pub cold: bool,
    /// Runs in place of the recorded component. Default: the recorded ones run.
    pub with: Option<Component>,
    /// Goes on after the first step that differs. Default: `false`.
    pub all: bool,
    /// Commands that re-run the steps of processes, by the handler's name. Default: none, and such
    /// steps are skipped.
    pub processes: BTreeMap<String, ProcessSpec>,
    /// What each step may use. Default: as for steps that are made.
    pub limits: Limits,
    /// How many guests run at a time. Default: 1.
    pub jobs: NonZeroUsize,
    /// Whether the bucket's store needs no runtime, as local files and memory do: it is quicker
    /// without. Default: `false`.
    pub local: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            from: None,
            handler: None,
            cold: false,
            with: None,
            all: false,
            processes: BTreeMap::new(),
            limits: Limits::default(),
            jobs: NonZeroUsize::MIN,
            local: false,
        }
    }
}

/// How far a replay is, for whoever watches it from another thread.
#[derive(Default)]
pub struct Progress {
    /// Steps that were found so far.
    pub found: AtomicU64,
    /// Steps that are done.
    pub done: AtomicU64,
}

/// What all workers of a replay share.
struct Shared {
    bucket: Bucket,
    upto: Snapshot,
    options: Options,
    components: Components,
    cache: Arc<NodeCache>,
    jobs: Arc<Semaphore>,
    tally: Tally,
}

/// Re-executes the steps that led to `upto`, a snapshot of `bucket`, in ancestors too. Needs a tokio
/// runtime; guests run on its blocking threads.
///
/// # Errors
/// Damage in the bucket, or a bucket that does not answer. What cannot be replayed is part of the
/// report, not an error.
pub async fn replay(
    bucket: &Bucket,
    upto: &Snapshot,
    sandbox: &Arc<Sandbox>,
    options: Options,
    progress: &Arc<Progress>,
) -> Result<Report, Error> {
    let lineage = lineage::read(bucket, upto, options.from).await?;
    let shared = Arc::new(Shared {
        bucket: bucket.clone(),
        upto: upto.clone(),
        components: Components::new(bucket.clone(), Arc::clone(sandbox)),
        cache: Arc::new(NodeCache::new(CACHE_BYTES)),
        jobs: Arc::new(Semaphore::new(options.jobs.get())),
        tally: Tally::new(options.all, Arc::clone(progress)),
        options,
    });
    let mut workers = JoinSet::new();
    plan::plan(&shared, &lineage, &mut workers).await?;
    while let Some(ended) = workers.join_next().await {
        ended.map_err(|join| Error::Internal { reason: join.to_string() })??;
    }
    let mut report = shared.tally.report(upto, lineage.missing);
    if let Some(difference) = &mut report.first_difference {
        difference.recorded.load_bodies(bucket).await;
    }
    Ok(report)
}

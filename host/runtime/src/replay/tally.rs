//! Collects verdicts from all workers, and decides when there is no more to be found out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pugmark_log::Snapshot;

use super::Progress;
use super::report::{Difference, Finding, Point, Report};

/// What a step came to.
pub(super) enum Verdict {
    /// It gave what is recorded.
    Identical,
    /// It did so only from a fresh instance.
    Impure(String),
    /// It gave something else.
    Different(Box<Difference>),
    /// It could not be replayed.
    Incomplete(String),
    /// It is not to be replayed.
    Skipped(String),
}

/// The verdicts so far.
pub(super) struct Tally {
    /// Whether steps behind the first difference are of interest.
    all: bool,
    /// The number of the first step that differs.
    first: AtomicU64,
    progress: Arc<Progress>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    verdicts: Vec<Noted>,
    /// Each reason once.
    reasons: Vec<String>,
    first_difference: Option<(u64, Box<Difference>)>,
}

/// A verdict in few bytes: there may be a million.
struct Noted {
    sequence: u64,
    point: Point,
    what: What,
    reason: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Identical,
    Impure,
    Different,
    Incomplete,
    Skipped,
}

impl Tally {
    pub(super) fn new(all: bool, progress: Arc<Progress>) -> Self {
        Self { all, first: AtomicU64::new(u64::MAX), progress, inner: Mutex::default() }
    }

    /// Counts a step that was found.
    pub(super) fn found(&self) {
        self.progress.found.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the step with this number is of no interest any more: one before it differs.
    pub(super) fn is_past(&self, sequence: u64) -> bool {
        !self.all && sequence > self.first.load(Ordering::Relaxed)
    }

    /// Takes the verdict on the step with this number.
    pub(super) fn add(&self, sequence: u64, point: Point, verdict: Verdict) {
        self.progress.done.fetch_add(1, Ordering::Relaxed);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (what, reason) = match verdict {
            Verdict::Identical => (What::Identical, 0),
            Verdict::Impure(reason) => (What::Impure, inner.reason(reason)),
            Verdict::Incomplete(reason) => (What::Incomplete, inner.reason(reason)),
            Verdict::Skipped(reason) => (What::Skipped, inner.reason(reason)),
            Verdict::Different(difference) => {
                self.first.fetch_min(sequence, Ordering::Relaxed);
                if inner.first_difference.as_ref().is_none_or(|(first, _)| sequence < *first) {
                    inner.first_difference = Some((sequence, difference));
                }
                (What::Different, 0)
            }
        };
        inner.verdicts.push(Noted { sequence, point, what, reason });
    }

    /// What was found, once all steps are done.
    pub(super) fn report(&self, upto: &Snapshot, missing: Option<Finding>) -> Report {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let first = inner.first_difference.take();
        let mut verdicts = std::mem::take(&mut inner.verdicts);
        verdicts.sort_unstable_by_key(|noted| noted.sequence);
        let ended_there = !self.all && first.is_some();
        if let Some((first, _)) = first.as_ref().filter(|_| ended_there) {
            verdicts.retain(|noted| noted.sequence <= *first);
        }
        let count = |what| verdicts.iter().filter(|noted| noted.what == what).count() as u64;
        let mut incomplete: Vec<Finding> = missing.into_iter().collect();
        incomplete.extend(inner.findings(&verdicts, What::Incomplete));
        Report {
            upto: Point { session: upto.session, version: upto.version },
            identical: count(What::Identical) + count(What::Impure),
            different: count(What::Different),
            ended_there,
            first_difference: first.map(|(_, difference)| *difference),
            incomplete,
            skipped: inner.findings(&verdicts, What::Skipped),
            impure: inner.findings(&verdicts, What::Impure),
        }
    }
}

impl Inner {
    fn reason(&mut self, reason: String) -> usize {
        if let Some(known) = self.reasons.iter().position(|other| *other == reason) {
            return known;
        }
        self.reasons.push(reason);
        self.reasons.len() - 1
    }

    /// The verdicts of one kind by reason, in the order of their first steps.
    fn findings(&self, verdicts: &[Noted], what: What) -> Vec<Finding> {
        let mut found: Vec<(usize, Finding)> = Vec::new();
        for noted in verdicts.iter().filter(|noted| noted.what == what) {
            if let Some((_, finding)) = found.iter_mut().find(|(of, _)| *of == noted.reason) {
                finding.steps += 1;
                continue;
            }
            let reason = self.reasons[noted.reason].clone();
            found.push((noted.reason, Finding { first: noted.point, steps: 1, reason }));
        }
        found.into_iter().map(|(_, finding)| finding).collect()
    }
}

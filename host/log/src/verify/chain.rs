//! The rules that each version of a session keeps, given the one before.

use crate::bucket::Bucket;
use crate::entry::{Entry, Event};
use crate::error::Error;
use crate::last_step::{Ended, LastStep};
use crate::manifest::Manifest;
use crate::snapshot::{Snapshot, SnapshotKind, State};
use crate::trace::is_same;
use crate::vector::Vector;

/// What a version does not keep of the rules.
#[derive(Default)]
pub(crate) struct Broken(pub(crate) Vec<String>);

impl Broken {
    fn unless(&mut self, holds: bool, rule: &str) {
        if !holds {
            self.0.push(rule.to_owned());
        }
    }
}

impl Bucket {
    /// What a version 0 does not keep of the rules.
    pub(crate) async fn check_first(
        &self,
        manifest: &Manifest,
        first: &Snapshot,
    ) -> Result<Broken, Error> {
        let mut broken = Broken::default();
        let parent = manifest.parent.as_ref().map(|parent| parent.snapshot);
        broken.unless(first.parent == parent, "it does not follow what its manifest says");
        broken.unless(first.created >= manifest.created, "it is older than its session");
        broken.unless(first.kind == SnapshotKind::Checkpoint, "a version 0 is a checkpoint");
        let inherited = first.log.count().checked_sub(first.objects.len() as u64);
        broken.unless(
            inherited.is_some_and(|inherited| first.last == LastStep::none(inherited)),
            "a version 0 has had no step, and has seen what it inherited",
        );
        let inherited = self.prefix(&first.log, first.last.seen).await?;
        broken.unless(
            first.log == extended(inherited, &first.objects),
            "its log is not what it inherited with its objects behind it",
        );
        Ok(broken)
    }

    /// What a version does not keep of the rules, given the one before.
    pub(crate) async fn check_next(
        &self,
        before: &Snapshot,
        next: &Snapshot,
    ) -> Result<Broken, Error> {
        let mut broken = Broken::default();
        broken.unless(
            next.parent == Some(before.digest()),
            "it does not name the digest of the version before it",
        );
        broken.unless(next.created >= before.created, "it is older than the version before it");
        check_trace(&mut broken, before, next);
        if next.last.version == next.version {
            self.check_step(&mut broken, before, next).await?;
        } else {
            check_push(&mut broken, before, next);
        }
        Ok(broken)
    }

    async fn check_step(
        &self,
        broken: &mut Broken,
        before: &Snapshot,
        next: &Snapshot,
    ) -> Result<(), Error> {
        let (seen, known) = (next.last.seen, before.last.seen + before.last.added);
        broken.unless(
            (known..=before.log.count()).contains(&seen),
            "its step did not see what the step before it saw and added",
        );
        broken.unless(before.last.outbox.is_empty(), "its step did not wait for an outbox");
        broken.unless(next.kind == SnapshotKind::Checkpoint, "a step is a checkpoint");
        broken.unless(
            next.last.added == next.objects.len() as u64,
            "its step does not count its outputs",
        );
        broken.unless(
            !(next.objects.is_empty() && next.last.ended == Ended::No),
            "its step added nothing and goes on",
        );
        let origins = next.last.outbox.iter().zip(0..).all(|(item, index)| {
            item.entry.origin().is_some_and(|origin| {
                (origin.session, origin.version, origin.index)
                    == (next.session, next.version, index)
            })
        });
        broken.unless(origins, "its outbox does not say where it comes from");
        let input = self.prefix(&before.log, seen).await?;
        let arrived = self.entries(&before.log, input.count()..before.log.count(), None);
        let arrived: Vec<Entry> = futures::TryStreamExt::try_collect(arrived).await?;
        broken.unless(
            next.log == extended(extended(input, &next.objects), &arrived),
            "its log is not what its step saw, its objects, and what had arrived",
        );
        Ok(())
    }
}

fn check_trace(broken: &mut Broken, before: &Snapshot, next: &Snapshot) {
    if next.last.version == next.version {
        broken.unless(next.trace.is_none(), "its step is done and has a trace");
    } else if !is_same(before.trace.as_deref(), next.trace.as_deref()) {
        broken.unless(
            next.objects.is_empty() && next.last.outbox.is_empty() && before.last.outbox.is_empty(),
            "it changes a trace and something else as well",
        );
    }
}

fn check_push(broken: &mut Broken, before: &Snapshot, next: &Snapshot) {
    let cleared = next.last.outbox.is_empty() && !before.last.outbox.is_empty();
    let expected = if cleared {
        LastStep { outbox: Vec::new(), ..before.last.clone() }
    } else {
        before.last.clone()
    };
    broken.unless(next.last == expected, "it is no step and changes the last step");
    broken.unless(
        !cleared || next.objects.is_empty(),
        "it clears an outbox and appends something as well",
    );
    let due = before.state() == State::Due;
    let traces = !is_same(before.trace.as_deref(), next.trace.as_deref());
    let kind = if due || traces { SnapshotKind::Provisional } else { SnapshotKind::Checkpoint };
    broken.unless(next.kind == kind, "its kind does not follow from the state before it");
    if next.objects.iter().any(|entry| entry.event() == Event::Wake) {
        let asleep = matches!(before.state(), State::Sleeping { until } if until <= next.created);
        broken.unless(
            asleep && next.objects.len() == 1,
            "it wakes what does not sleep, or before its time",
        );
    }
    broken.unless(
        next.log == extended(before.log.clone(), &next.objects),
        "its log is not that of the version before with its objects behind it",
    );
}

fn extended(mut log: Vector, entries: &[Entry]) -> Vector {
    log.append(entries.iter().cloned(), &mut Vec::new());
    log
}

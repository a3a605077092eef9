//! Steps exactly as they were run: a fresh instance, or a process, on the log of the snapshot that
//! the step began on.

use std::sync::Arc;

use pugmark_log::{Entry, layout};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::Shared;
use super::answer::{Answer, Replayed, message_of};
use super::group::{Group, Planned, Steps};
use super::report::Difference;
use super::tally::Verdict;
use super::warm::repeat;
use crate::effects::{Answers, Replayer};
use crate::error::Error;
use crate::failure::InvokeError;
use crate::invoke::invoke;
use crate::sandbox::{Component, World};
use crate::step::Context;

/// Replays the steps of a group, several at a time.
pub(super) async fn run(
    shared: Arc<Shared>,
    group: Arc<Group>,
    component: Option<Component>,
    context: Arc<Context>,
    mut steps: Steps,
) -> Result<(), Error> {
    let mut running: JoinSet<Result<(), Error>> = JoinSet::new();
    while let Some(batch) = steps.recv().await {
        for step in batch.into_iter().filter(|step| !shared.tally.is_past(step.sequence)) {
            let permit = Arc::clone(&shared.jobs).acquire_owned().await;
            while let Some(ended) = running.try_join_next() {
                settled(ended)?;
            }
            let (shared, group) = (Arc::clone(&shared), Arc::clone(&group));
            let (component, context) = (component.clone(), Arc::clone(&context));
            running.spawn(async move {
                let verdict = verdict(&shared, &group, component.as_ref(), &context, &step).await;
                drop(permit);
                shared.tally.add(step.sequence, step.point, verdict?);
                Ok(())
            });
        }
    }
    while let Some(ended) = running.join_next().await {
        settled(ended)?;
    }
    Ok(())
}

fn settled(ended: Result<Result<(), Error>, tokio::task::JoinError>) -> Result<(), Error> {
    ended.map_err(|join| Error::Internal { reason: join.to_string() })?
}

async fn verdict(
    shared: &Arc<Shared>,
    group: &Arc<Group>,
    component: Option<&Component>,
    context: &Context,
    step: &Planned,
) -> Result<Verdict, Error> {
    let recorded = recorded(shared, step).await?;
    let replayed = match once(group, context, step).await? {
        Replayed::Answer(replayed) => replayed,
        Replayed::Incomplete(reason) => return Ok(Verdict::Incomplete(reason)),
    };
    if replayed == recorded {
        return Ok(Verdict::Identical);
    }
    let kept = |component: &&Component| step.first < step.this && component.world() == World::Typed;
    if let Some(component) = component.filter(kept) {
        let again = repeat(shared, group, component, step);
        if matches!(again.await?, Replayed::Answer(again) if again == recorded) {
            return Ok(impure(group));
        }
    }
    Ok(different(group, step, recorded, replayed))
}

/// The verdict on a handler whose answer depends on whether it was asked before.
pub(super) fn impure(group: &Group) -> Verdict {
    Verdict::Impure(format!(
        "`decide` of `{}` changes what a later `decide` answers",
        group.handler
    ))
}

/// The verdict on an answer that is not the recorded one.
pub(super) fn different(
    group: &Group,
    step: &Planned,
    recorded: Answer,
    replayed: Answer,
) -> Verdict {
    Verdict::Different(Box::new(Difference {
        point: step.point,
        handler: group.handler.clone(),
        component: group.component,
        recorded,
        replayed,
    }))
}

/// The recorded answer of a step, from its checkpoint.
pub(super) async fn recorded(shared: &Shared, step: &Planned) -> Result<Answer, Error> {
    let point = step.point;
    let key = layout::snapshot(&point.session, point.version).to_string();
    let corrupt = |reason: String| pugmark_log::Error::Corrupt { key: key.clone(), reason };
    let recorded = shared.bucket.recorded(&point.session, point.version).await?;
    let lines = recorded.ok_or_else(|| corrupt("it is gone".to_owned()))?.objects;
    let entries: Result<Vec<Entry>, _> = lines.into_iter().map(Entry::parse).collect();
    Ok(Answer::recorded(entries.map_err(|error| corrupt(error.to_string()))?, &step.last))
}

/// Runs a step on its own.
pub(super) async fn once(
    group: &Group,
    context: &Context,
    step: &Planned,
) -> Result<Replayed, Error> {
    let moment = &step.turn.moment;
    let session = step.point.session;
    let basis = context.bucket.snapshot_named(&session, moment.snapshot).await?;
    if basis.log.root() != moment.log_digest {
        let key = layout::snapshot(&session, moment.snapshot).to_string();
        let reason = format!("its log is not what the step of version {} saw", step.point.version);
        return Err(pugmark_log::Error::Corrupt { key, reason }.into());
    }
    let handle = Handle::current();
    let outside = || Replayer::of(&step.turn.effects, &context.bucket, &handle);
    let answers = Answers { outside: &outside, is_resumed: false };
    match invoke(context, &group.frame(moment), &basis, None, &answers).await {
        Ok(outputs) => Answer::replayed(outputs, step),
        Err(InvokeError::Failure(failure)) if failure.is_limit() || failure.is_unusable() => {
            Ok(Replayed::Incomplete(message_of(&failure)))
        }
        Err(InvokeError::Failure(failure)) => Ok(Replayed::failed(&failure)),
        Err(InvokeError::Host(error)) => Replayed::host(error),
    }
}

//! The loop: step after step, until the session is at rest.

use std::time::Duration;

use pugmark_log::{Snapshot, State, Timestamp};

use crate::failure::StepError;
use crate::step::{Committed, Context, step};
use crate::trace::StepSpan;

/// How often a sleeping session is looked at for something pushed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// When a loop ends.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// After one step, whatever the session waits for then.
    pub once: bool,
    /// After this many steps.
    pub max_steps: Option<u64>,
}

/// What happens in a loop, for whoever watches it.
pub trait Watch: Send {
    /// A step begins on this snapshot.
    fn begins(&mut self, _tip: &Snapshot) {}
    /// A step was committed.
    fn committed(&mut self, _committed: &Committed) {}
    /// What a step sends to other sessions is delivered, so many outputs.
    fn delivered(&mut self, _outputs: usize) {}
    /// A step is over, committed or not. Called where steps belong to a trace.
    fn ended(&mut self, _span: StepSpan) {}
    /// The session sleeps, and the loop waits.
    fn sleeps(&mut self, _until: Timestamp) {}
}

/// How a loop ended.
#[derive(Debug)]
pub struct Finished {
    /// The session's newest snapshot, as far as the loop knows.
    pub tip: Snapshot,
    /// How many steps were committed.
    pub steps: u64,
}

/// Runs steps until the session is at rest; at least one. What an earlier run has not delivered is
/// delivered first. A handler that was kept between steps is ended.
///
/// # Errors
/// [`StepError`] of the step that was not committed, or not delivered; those before it were.
pub async fn run(
    context: &Context,
    tip: Snapshot,
    options: Options,
    watch: &mut dyn Watch,
) -> Result<Finished, StepError> {
    let finished = run_steps(context, tip, options, watch).await;
    context.handler.shut_down().await;
    finished
}

async fn run_steps(
    context: &Context,
    tip: Snapshot,
    options: Options,
    watch: &mut dyn Watch,
) -> Result<Finished, StepError> {
    let tip = deliver(context, tip, watch).await?;
    let mut tip = match tip.state() {
        State::Sleeping { until } if context.bucket.environment().now() >= until => {
            context.bucket.wake(&tip.session, Some(tip.version)).await?
        }
        _ => tip,
    };
    let mut steps = 0;
    loop {
        // Another runner may have stopped short of it.
        tip = deliver(context, tip, watch).await?;
        watch.begins(&tip);
        let committed = traced_step(context, tip, watch).await?;
        watch.committed(&committed);
        tip = deliver(context, committed.snapshot, watch).await?;
        steps += 1;
        if options.once || options.max_steps.is_some_and(|most| steps >= most) {
            return Ok(Finished { tip, steps });
        }
        if let State::Sleeping { until } = tip.state() {
            watch.sleeps(until);
            tip = wait(context, tip, until).await?;
        }
        if tip.state() == State::AtRest {
            // What was pushed while the checkpoint was made is part of it, but a push may have
            // come since: a rest that is not the tip's is none.
            tip = context.bucket.tip(&tip.session, Some(tip.version)).await?;
            if tip.state() == State::AtRest {
                return Ok(Finished { tip, steps });
            }
        }
    }
}

/// A step, and a word to the watcher on how it went.
async fn traced_step(
    context: &Context,
    tip: Snapshot,
    watch: &mut dyn Watch,
) -> Result<Committed, StepError> {
    let Some(trace) = &context.trace else { return step(context, tip, None).await };
    let environment = context.bucket.environment();
    let mut random = [0; 8];
    environment.fill_random(&mut random);
    let span = trace.span(random);
    let (session, snapshot, began) = (tip.session, tip.version, environment.now());
    let stepped = step(context, tip, Some(&span)).await;
    watch.ended(StepSpan {
        span,
        session,
        snapshot,
        agent: context.agent.clone(),
        kind: context.handler.kind(),
        began,
        ended: environment.now(),
        outcome: match &stepped {
            Ok(committed) => Ok(committed.snapshot.version),
            Err(error) => Err(with_sources(error)),
        },
    });
    stepped
}

/// An error's message and those of what caused it.
fn with_sources(error: &StepError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Delivers what the last step sends to other sessions, where that is still to be done.
async fn deliver(
    context: &Context,
    tip: Snapshot,
    watch: &mut dyn Watch,
) -> Result<Snapshot, StepError> {
    let outputs = tip.last.outbox.len();
    if outputs == 0 {
        return Ok(tip);
    }
    let (session, version) = (tip.session, tip.last.version);
    let delivered = context.bucket.deliver(tip).await;
    let tip = delivered.map_err(|source| StepError::Undelivered { session, version, source })?;
    watch.delivered(outputs);
    Ok(tip)
}

/// Waits until a sleeping session is due: its time has come, or something was pushed.
async fn wait(context: &Context, tip: Snapshot, until: Timestamp) -> Result<Snapshot, StepError> {
    let environment = context.bucket.environment();
    let mut tip = tip;
    loop {
        let left = until.as_millis().saturating_sub(environment.now().as_millis());
        environment.sleep(Duration::from_millis(left).min(LOOK_INTERVAL)).await;
        tip = context.bucket.wake(&tip.session, Some(tip.version)).await?;
        if !matches!(tip.state(), State::Sleeping { .. }) {
            return Ok(tip);
        }
    }
}

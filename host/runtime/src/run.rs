//! The loop: step after step, until the session is at rest.

use std::time::Duration;

use pugmark_log::{Snapshot, State, Timestamp};

use crate::step::{Committed, Context, StepError, step};

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
    fn begins(&mut self, tip: &Snapshot);
    /// A step was committed.
    fn committed(&mut self, committed: &Committed);
    /// The session sleeps, and the loop waits.
    fn sleeps(&mut self, until: Timestamp);
}

/// How a loop ended.
#[derive(Debug)]
pub struct Finished {
    /// The session's newest snapshot, as far as the loop knows.
    pub tip: Snapshot,
    /// How many steps were committed.
    pub steps: u64,
}

/// Runs steps until the session is at rest; at least one.
///
/// # Errors
/// [`StepError`] of the step that was not committed; those before it were.
pub async fn run(
    context: &Context,
    tip: Snapshot,
    options: Options,
    watch: &mut dyn Watch,
) -> Result<Finished, StepError> {
    let mut tip = match tip.state() {
        State::Sleeping { until } if context.bucket.environment().now() >= until => {
            context.bucket.wake(&tip.session, Some(tip.version)).await?
        }
        _ => tip,
    };
    let mut steps = 0;
    loop {
        watch.begins(&tip);
        let committed = step(context, tip).await?;
        watch.committed(&committed);
        tip = committed.snapshot;
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

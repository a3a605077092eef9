//! What a handler decides.

use std::time::Duration;

use crate::Output;

/// What happens after the outputs are committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The handler is called again, if it appended anything.
    Continue,
    /// The session rests until something is pushed.
    Pause {
        /// Recorded, for people.
        reason: String,
    },
    /// The session rests until the time has come or something is pushed.
    Sleep {
        /// From the step's commit on; rounded up to whole milliseconds.
        duration: Duration,
        /// Recorded, for people.
        reason: String,
    },
}

/// What a step comes to: outputs, committed together, and what happens next.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    outputs: Vec<Output>,
    next: Next,
    failure: Option<String>,
}

impl Decision {
    fn new(outputs: Vec<Output>, next: Next) -> Self {
        Self { outputs, next, failure: None }
    }

    /// Appends an event; then the handler is called again.
    pub fn append(output: Output) -> Self {
        Self::new(vec![output], Next::Continue)
    }

    /// Rests until something is pushed.
    pub fn pause(reason: impl Into<String>) -> Self {
        Self::new(Vec::new(), Next::Pause { reason: reason.into() })
    }

    /// Rests until `duration` has passed or something is pushed.
    pub fn sleep(duration: Duration, reason: impl Into<String>) -> Self {
        Self::new(Vec::new(), Next::Sleep { duration, reason: reason.into() })
    }

    /// Adds nothing to the log, which ends the turn: the session rests until something is pushed.
    pub fn nothing() -> Self {
        Self::new(Vec::new(), Next::Continue)
    }

    /// Fails the step: nothing is committed, and the reason is shown to who runs it. What else the
    /// decision holds is dropped.
    pub fn fail(reason: impl Into<String>) -> Self {
        Self { failure: Some(reason.into()), ..Self::nothing() }
    }

    /// Appends another event, after those that are there.
    pub fn and(mut self, output: Output) -> Self {
        self.outputs.push(output);
        self
    }

    /// Rests after the outputs, until something is pushed.
    pub fn then_pause(self, reason: impl Into<String>) -> Self {
        Self { next: Next::Pause { reason: reason.into() }, ..self }
    }

    /// Rests after the outputs, until `duration` has passed or something is pushed.
    pub fn then_sleep(self, duration: Duration, reason: impl Into<String>) -> Self {
        Self { next: Next::Sleep { duration, reason: reason.into() }, ..self }
    }

    /// The events that are appended.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// What happens after that.
    #[must_use]
    pub fn next(&self) -> &Next {
        &self.next
    }

    /// Why the step fails, if it does.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        let of_an_output = || self.outputs.iter().find_map(|output| output.failure.as_deref());
        self.failure.as_deref().or_else(of_an_output)
    }

    /// The decision as it is sent, or why the step fails.
    pub(crate) fn settle(self) -> Result<(Vec<Output>, Next), String> {
        match self.failure() {
            Some(reason) => Err(reason.to_owned()),
            None => Ok((self.outputs, self.next)),
        }
    }
}

impl From<Output> for Decision {
    fn from(output: Output) -> Self {
        Self::append(output)
    }
}

/// Whole milliseconds, rounded up so that nothing wakes early.
pub(crate) fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn outputs_keep_their_order() {
        let decision = Decision::append(Output::text("a")).and(Output::text("b")).then_pause("c");
        let (outputs, next) = decision.settle().unwrap();
        assert_eq!(outputs, [Output::text("a"), Output::text("b")]);
        assert_eq!(next, Next::Pause { reason: "c".into() });
    }

    #[test]
    fn an_output_without_a_body_fails_the_step() {
        let keys_are_no_strings = BTreeMap::from([((1, 2), 3)]);
        let decision = Decision::append(Output::json(&keys_are_no_strings).name("table"));
        assert_eq!(
            decision.settle().unwrap_err(),
            "an output has no JSON form: key must be a string"
        );
        assert_eq!(Decision::fail("no").settle().unwrap_err(), "no");
    }

    #[test]
    fn rounds_up() {
        assert_eq!(to_millis(Duration::from_micros(1_500_001)), 1_501);
        assert_eq!(to_millis(Duration::from_secs(2)), 2_000);
        assert_eq!(to_millis(Duration::MAX), u64::MAX);
    }
}

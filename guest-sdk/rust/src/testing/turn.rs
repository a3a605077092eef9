//! What a handler did until it came to rest.

use serde::de::DeserializeOwned;

use crate::{Decision, Next, Output};

/// The decisions of a handler until its session came to rest: at least one.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    decisions: Vec<Decision>,
}

impl Turn {
    pub(super) fn new(decisions: Vec<Decision>) -> Self {
        Self { decisions }
    }

    /// Every step's decision, in order.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// All that was appended, in order. Of a step that failed, nothing is.
    #[must_use]
    pub fn outputs(&self) -> Vec<Output> {
        let committed = self.decisions.iter().filter(|decision| decision.failure().is_none());
        committed.flat_map(|decision| decision.outputs().iter().cloned()).collect()
    }

    /// The bodies of all that was appended, as JSON of the shape `T`.
    ///
    /// # Panics
    /// If one is not.
    #[must_use]
    pub fn json<T: DeserializeOwned>(&self) -> Vec<T> {
        let body = |(number, output): (usize, &Output)| {
            serde_json::from_slice(output.body()).unwrap_or_else(|error| {
                let body = String::from_utf8_lossy(output.body());
                panic!(
                    "output {number} of the turn is not the JSON that was expected: {error}: {body}"
                )
            })
        };
        (1..).zip(&self.outputs()).map(body).collect()
    }

    /// What the handler said when it paused or went to sleep; `None` if it did neither.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        let last = self.decisions.last().filter(|decision| decision.failure().is_none())?;
        match last.next() {
            Next::Continue => None,
            Next::Pause { reason } | Next::Sleep { reason, .. } => Some(reason),
        }
    }

    /// Why the last step failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.decisions.last()?.failure()
    }
}

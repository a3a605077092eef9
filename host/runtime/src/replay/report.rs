//! What a replay found.

use pugmark_log::{Digest, SessionId};

use super::answer::Answer;

/// A version of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The session.
    pub session: SessionId,
    /// The version.
    pub version: u64,
}

/// Steps that have something in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The first of them.
    pub first: Point,
    /// How many there are.
    pub steps: u64,
    /// What they have in common.
    pub reason: String,
}

/// A step that answered something else than what is recorded.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The step's checkpoint.
    pub point: Point,
    /// The handler's name.
    pub handler: String,
    /// The recorded component; `None` for a process.
    pub component: Option<Digest>,
    /// What is recorded.
    pub recorded: Answer,
    /// What came out now.
    pub replayed: Answer,
}

/// What a replay comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every step that was to be replayed gave what is recorded.
    Identical,
    /// A step gave something else.
    Different,
    /// None gave anything else, but some could not be replayed.
    Incomplete,
}

/// What a replay found.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was replayed: up to this version of this session.
    pub upto: Point,
    /// Steps that gave what is recorded. Where a replay ends at the first difference, only those
    /// before it count, here and in all that follows.
    pub identical: u64,
    /// Steps that gave something else.
    pub different: u64,
    /// The first of these, in the order of the log.
    pub first_difference: Option<Difference>,
    /// Whether the replay ended at the first difference.
    pub ended_there: bool,
    /// Steps that could not be replayed, by reason.
    pub incomplete: Vec<Finding>,
    /// Steps that are not to be replayed, by reason.
    pub skipped: Vec<Finding>,
    /// Steps that gave what is recorded only from a fresh instance, by handler. They count as
    /// identical.
    pub impure: Vec<Finding>,
}

impl Report {
    /// What it comes to.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if self.first_difference.is_some() {
            Outcome::Different
        } else if self.incomplete.is_empty() {
            Outcome::Identical
        } else {
            Outcome::Incomplete
        }
    }
}

//! Steps that get something from outside: runners make each answer durable before they go on, and
//! take up what a runner that crashed had recorded. Invariant 8 is checked here.

use pugmark_log::{Error, Snapshot};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::actors::tolerate;
use crate::world::{Actor, Effect, World};

/// After so many bells a body is old enough to be collected.
const OLD_BODY_BELLS: u64 = 3;

/// What a trace holds here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Trace {
    /// Which of two handlers runs, and the version that its attempt began on.
    attempt: (u64, u64),
    effects: Vec<Answer>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Answer {
    /// No other answer has it.
    number: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<Body>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Body {
    hash: pugmark_log::Digest,
}

fn trace_of(snapshot: &Snapshot) -> Option<Trace> {
    snapshot.trace.as_ref().map(|trace| serde_json::from_str(trace.get()).unwrap())
}

/// A runner's attempt at a step.
pub struct Attempt {
    /// The snapshot that the step began on.
    pub basis: Snapshot,
    /// The newest one that the runner knows.
    pub known: Snapshot,
    trace: Trace,
}

impl Attempt {
    /// Takes up the attempt whose trace `tip` has if it is of the same handler, else begins one.
    pub async fn begin(actor: &Actor, tip: Snapshot) -> Option<Self> {
        let handler = u64::from(actor.world.below(4) == 0);
        if let Some(trace) = trace_of(&tip).filter(|trace| trace.attempt.0 == handler) {
            let found = actor.bucket.snapshot_named(&tip.session, trace.attempt.1).await;
            return Some(Self { basis: tolerate(found)?, known: tip, trace });
        }
        let trace = Trace { attempt: (handler, tip.version), effects: Vec::new() };
        Some(Self { basis: tip.clone(), known: tip, trace })
    }

    /// Gets what the step needs; false if the attempt is over.
    pub async fn get_effects(&mut self, actor: &Actor) -> bool {
        let world = &actor.world;
        while world.below(1000) < u64::from(world.plan.effects) {
            let response = match world.below(3) {
                0 => match tolerate(actor.bucket.put_object(body(world).into()).await) {
                    Some(hash) => Some(Body { hash }),
                    None => return false,
                },
                _ => None,
            };
            let index = self.trace.effects.len();
            let number = {
                let mut effects = world.effects.lock().unwrap();
                let (session, known) = (self.basis.session, self.known.version);
                effects.push(Effect { session, attempt: self.trace.attempt, index, known });
                effects.len()
            };
            self.trace.effects.push(Answer { number, response });
            let trace = to_raw_value(&self.trace).unwrap();
            if !self.set(actor, Some(trace)).await {
                return false;
            }
        }
        // Now and then the handler fails.
        if !self.trace.effects.is_empty() && world.below(8) == 0 {
            self.set(actor, None).await;
            return false;
        }
        true
    }

    async fn set(&mut self, actor: &Actor, trace: Option<Box<RawValue>>) -> bool {
        match actor.bucket.set_trace(self.known.clone(), trace).await {
            Ok(known) => {
                self.known = known;
                true
            }
            Err(
                Error::Superseded { .. }
                | Error::TraceTaken { .. }
                | Error::Unknown { .. }
                | Error::Store { .. }
                | Error::SessionRemoved { .. },
            ) => false,
            Err(other) => panic!("a trace was not recorded: {other}"),
        }
    }

    /// What the step's checkpoint records.
    pub fn record(&self, append: usize) -> String {
        let Trace { attempt, effects } = &self.trace;
        serde_json::json!({ "append": append, "attempt": attempt, "effects": effects }).to_string()
    }
}

/// A large body; where there are collections, one that is just old enough to be collected.
fn body(world: &World) -> String {
    if world.collects() {
        return world.old_body(OLD_BODY_BELLS);
    }
    format!("answer {} {}", world.below(4), "x".repeat(1100))
}

/// Invariant 8: a trace only ever grows, is over with the step, and whoever knew it went on behind
/// it; and what a step records was durable before.
pub fn check(world: &World, snapshots: &[Snapshot]) {
    let id = snapshots[0].session;
    for (before, next) in snapshots.iter().zip(&snapshots[1..]) {
        if next.last.version == next.version {
            assert!(next.trace.is_none(), "{id}: a trace survived");
            let record = next.step.as_ref().unwrap().get();
            let record: Trace = serde_json::from_str(record).unwrap();
            // Not only the last trace of that attempt: of two runners at it, one may have failed and
            // another begun it anew since.
            let mut durable = snapshots[..=usize::try_from(before.version).unwrap()]
                .iter()
                .filter_map(trace_of)
                .filter(|trace| trace.attempt == record.attempt);
            assert!(
                record.effects.is_empty()
                    || durable.any(|trace| trace.effects.starts_with(&record.effects)),
                "{id}: version {}",
                next.version
            );
            continue;
        }
        let (Some(now), then) = (trace_of(next), trace_of(before)) else { continue };
        let basis = &snapshots[usize::try_from(now.attempt.1).unwrap()];
        assert_eq!(basis.last.version, next.last.version, "{id}: a trace of an earlier step");
        let known = then.filter(|then| then.attempt == now.attempt);
        let known = known.map(|then| then.effects).unwrap_or_default();
        assert!(now.effects.starts_with(&known), "{id}: an answer was lost at {}", next.version);
        assert!(now.effects.len() <= known.len() + 1, "{id}: an answer came late");
    }
    for effect in world.effects.lock().unwrap().iter().filter(|effect| effect.session == id) {
        let known = trace_of(&snapshots[usize::try_from(effect.known).unwrap()]);
        let known = known.filter(|trace| trace.attempt == effect.attempt);
        let recorded = known.map_or(0, |trace| trace.effects.len());
        assert_eq!(recorded, effect.index, "{id}: it was got again: {effect:?}");
    }
}

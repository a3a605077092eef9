//! The trace of a step that is under way: what it got from outside the session, durable before the
//! handler sees it.
//!
//! A trace belongs to one attempt at a step. It is written into a version that adds no entry; every
//! version that others make carries it on, and a step's checkpoint ends it. What is in it is the
//! runtime's affair; to this crate it is a text that is there or not, and the objects that it names.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::append::ATTEMPTS;
use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::error::Error;
use crate::snapshot::{Snapshot, SnapshotKind};

impl Bucket {
    /// Makes `trace` the session's trace, in place of the one that `known` has: the newest snapshot
    /// that the caller knows. With `None`, ends that one. Returns the newest snapshot then; what
    /// the trace names has to be stored before.
    ///
    /// # Errors
    /// [`Error::Superseded`] if a step was committed since, [`Error::TraceTaken`] if another run
    /// has changed the trace; otherwise as [`Bucket::push`].
    pub async fn set_trace(
        &self,
        known: Snapshot,
        trace: Option<Box<RawValue>>,
    ) -> Result<Snapshot, Error> {
        let session = known.session;
        let mut tip = known.clone();
        for _ in 0..ATTEMPTS {
            if tip.last.version != known.last.version {
                return Err(Error::Superseded { session, version: tip.last.version });
            }
            if is_same(tip.trace.as_deref(), trace.as_deref()) {
                return Ok(tip);
            }
            if !is_same(tip.trace.as_deref(), known.trace.as_deref()) {
                return Err(Error::TraceTaken { session, version: tip.version });
            }
            let mut next = self.appended(&tip, SnapshotKind::Provisional, &[]);
            next.trace.clone_from(&trace);
            if let Some(made) = self.try_extend(&tip, next).await? {
                return Ok(made);
            }
            tip = self.tip(&session, Some(tip.version + 1)).await?;
        }
        Err(Error::Contended { session, attempts: ATTEMPTS })
    }
}

/// Whether two versions have the same trace.
pub(crate) fn is_same(one: Option<&RawValue>, other: Option<&RawValue>) -> bool {
    one.map(RawValue::get) == other.map(RawValue::get)
}

/// What a trace, or a step's record, says of what was got from outside.
#[derive(Deserialize)]
struct Effects {
    #[serde(default)]
    effects: Vec<Effect>,
}

#[derive(Deserialize)]
struct Effect {
    #[serde(default)]
    response: Option<Response>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    hash: Option<Digest>,
    #[serde(default)]
    size: Option<u64>,
}

/// The objects that hold what a trace or a step's record says was answered, with their lengths. A
/// record of another form has none that are known.
pub(crate) fn answers_in(record: &RawValue) -> Vec<(Digest, Option<u64>)> {
    let effects = serde_json::from_str::<Effects>(record.get()).map(|record| record.effects);
    let responses = effects.unwrap_or_default().into_iter().filter_map(|effect| effect.response);
    responses.filter_map(|response| Some((response.hash?, response.size))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bodies_of_answers() {
        let (asked, answered) = (Digest::of(b"asked"), Digest::of(b"answered"));
        let text = format!(
            r#"{{"n":1,"effects":[{{"request":{{"hash":"{asked}","size":9}},"response":{{"status":200,"hash":"{answered}","size":2000}}}},{{"request":{{}},"error":"x"}},{{"request":{{}},"response":{{"data":""}}}}]}}"#
        );
        let record = RawValue::from_string(text).unwrap();
        assert_eq!(answers_in(&record), [(answered, Some(2000))]);
        let other = RawValue::from_string(r#"{"effects":7}"#.to_owned()).unwrap();
        assert_eq!(answers_in(&other), []);
    }
}

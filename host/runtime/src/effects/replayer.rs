//! Answers the requests of a step that is replayed: from its record alone. Nothing is connected to.

use std::sync::Arc;

use pugmark_log::Bucket;
use tokio::runtime::Handle;

use super::record::{Effect, RequestRecord};
use crate::error::Error;
use crate::sandbox::{Answer, Failure, Outside, Request, StepError};

/// What a step recorded; `None` if all its requests were denied.
pub(crate) type Recorded = Option<Arc<[Effect]>>;

/// Answers from the record of one step.
pub(crate) struct Replayer {
    bucket: Bucket,
    effects: Arc<[Effect]>,
    handle: Handle,
    asked: usize,
}

impl Replayer {
    /// Answers as recorded. Bodies come from `bucket`, read by the runtime of `handle`.
    pub(crate) fn of(
        recorded: &Recorded,
        bucket: &Bucket,
        handle: &Handle,
    ) -> Option<Box<dyn Outside>> {
        let effects = Arc::clone(recorded.as_ref()?);
        let (bucket, handle) = (bucket.clone(), handle.clone());
        Some(Box::new(Self { bucket, effects, handle, asked: 0 }))
    }
}

impl Outside for Replayer {
    fn ask(&mut self, request: Request) -> Result<Answer, StepError> {
        let number = self.asked;
        self.asked += 1;
        let record = RequestRecord::of(&request);
        let Some(effect) = self.effects.get(number) else {
            let (count, url) = (self.effects.len(), request.url());
            let more =
                format!("request {} is {} {url}; recorded are {count}", number + 1, request.method);
            return Err(diverged(more));
        };
        self.handle.block_on(answer_as_recorded(&self.bucket, effect, &record, number))
    }

    fn finish(&mut self) -> Result<(), StepError> {
        let count = self.effects.len();
        if self.asked < count {
            return Err(diverged(format!("it made {} requests; recorded are {count}", self.asked)));
        }
        Ok(())
    }
}

/// The error that a handler asks something else than what is recorded.
pub(super) fn diverged(difference: String) -> StepError {
    Failure::Diverged { difference }.into()
}

/// The recorded answer, if the request is the recorded one.
pub(super) async fn answer_as_recorded(
    bucket: &Bucket,
    effect: &Effect,
    asked: &RequestRecord,
    number: usize,
) -> Result<Answer, StepError> {
    if let Some(difference) = effect.difference(asked) {
        return Err(diverged(format!("of request {}, {difference}", number + 1)));
    }
    let answer = effect.answer(bucket).await?;
    let unreadable = || Error::UnreadableEffect { number: number + 1 };
    Ok(answer.ok_or_else(unreadable)?)
}

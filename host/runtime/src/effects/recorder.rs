//! Answers the requests of a step that is made: from the trace as far as that goes, then from the
//! network, each answer durable before it is given.

use std::sync::Arc;

use pugmark_log::Bucket;
use tokio::runtime::Handle;

use super::Http;
use super::attempt::Recording;
use super::client::{Call, NoResponse};
use super::record::{Effect, RequestRecord};
use super::replayer::{answer_as_recorded, diverged};
use crate::error::Error;
use crate::sandbox::{
    Answer, Diagnostics, HttpLimits, Level, Outside, Refusal, Request, StepError, escape,
};
use crate::step::Context;

/// Answers the requests of one step.
pub(super) struct Recorder {
    bucket: Bucket,
    http: Option<Arc<Http>>,
    limits: HttpLimits,
    diagnostics: Diagnostics,
    recording: Recording,
    handle: Handle,
    /// How many requests there were.
    asked: usize,
}

impl Recorder {
    pub(super) fn new(context: &Context, recording: Recording, handle: Handle) -> Self {
        Self {
            bucket: context.bucket.clone(),
            http: context.http.clone(),
            limits: context.limits.http.clone(),
            diagnostics: Arc::clone(&context.diagnostics),
            recording,
            handle,
            asked: 0,
        }
    }

    async fn live(&self, request: &Request) -> Result<Answer, StepError> {
        let refused = match &self.http {
            None => (Refusal::Denied, "`--allow-http HOST` allows it".to_owned()),
            Some(http) => match http.send(request, &self.limits).await {
                Ok(response) => return Ok(Ok(response)),
                Err(NoResponse::Ends(error)) => return Err(error),
                Err(NoResponse::Refused(refusal, reason)) => (refusal, reason),
            },
        };
        let (refusal, reason) = refused;
        let url = format!("{}://{}", request.scheme.name(), request.authority);
        let text = format!("a request to {url} came to nothing ({}): {reason}", refusal.name());
        (self.diagnostics)(Level::Warn, &escape(&text));
        Ok(Err(refusal))
    }
}

impl Http {
    async fn send(
        &self,
        request: &Request,
        limits: &HttpLimits,
    ) -> Result<crate::sandbox::Response, NoResponse> {
        let to = self.rules.destination(request);
        let to = to.map_err(|reason| NoResponse::Refused(Refusal::Denied, reason))?;
        let call = Call { request, to: &to, secrets: &self.secrets, limits };
        self.client.send(&call).await
    }
}

impl Outside for Recorder {
    fn ask(&mut self, request: Request) -> Result<Answer, StepError> {
        let number = self.asked;
        self.asked += 1;
        let record = RequestRecord::of(&request);
        if let Some(effect) = self.recording.recorded(number) {
            let answered = answer_as_recorded(&self.bucket, &effect, &record, number);
            return self.handle.block_on(answered);
        }
        self.handle.block_on(async {
            let answer = self.live(&request).await?;
            let effect = Effect::record(&self.bucket, record, &answer).await?;
            self.recording.append(&self.bucket, effect).await?;
            Ok(answer)
        })
    }

    fn finish(&mut self) -> Result<(), StepError> {
        let count = self.recording.count();
        if self.asked < count {
            return Err(diverged(format!("it made {} requests; recorded are {count}", self.asked)));
        }
        Ok(())
    }
}

impl From<pugmark_log::Error> for StepError {
    fn from(error: pugmark_log::Error) -> Self {
        Self::Host(Error::from(error))
    }
}

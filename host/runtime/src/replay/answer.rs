//! What a step answered: as its checkpoint records it, and as it came out now.

use bytes::Bytes;
use pugmark_log::{Bucket, Destination, Draft, Ended, Entry, LastStep, Origin, StepEnd, Target};

use super::group::Planned;
use crate::error::Error;
use crate::handler::Output;
use crate::step::end_of;

/// The longest body that is loaded to show where two answers differ, in bytes.
const SHOWN_BODY: u64 = 1 << 20;

/// What a step answered. Equal answers are the same to the byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It ended well.
    Outputs {
        /// Its outputs, its own session's first.
        outputs: Vec<Line>,
        /// How it ended.
        ended: Ended,
    },
    /// It failed.
    Failed {
        /// How. Text of the guest's own is not escaped.
        message: String,
    },
}

/// One output.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where it goes, if not into the step's own session.
    pub to: Option<Target>,
    /// The output as an entry.
    pub entry: Entry,
    /// Its body, as far as it is known.
    pub body: Option<Bytes>,
}

impl PartialEq for Line {
    /// The body's hash is part of the entry.
    fn eq(&self, other: &Self) -> bool {
        self.to == other.to && self.entry.line() == other.entry.line()
    }
}

impl Eq for Line {}

/// What a step came to now.
pub(super) enum Replayed {
    /// An answer.
    Answer(Answer),
    /// No answer that could be compared, and why.
    Incomplete(String),
}

impl Answer {
    /// The recorded answer of a step whose outputs for its own session are `own`.
    pub(super) fn recorded(own: Vec<Entry>, last: &LastStep) -> Self {
        let own = own.into_iter().map(|entry| (None, entry));
        let sent = last.outbox.iter().map(|item| {
            let to = match item.to {
                Destination::Session { session, .. } => Target::Session(session),
                Destination::Fork { .. } => Target::Fork,
            };
            (Some(to), item.entry.clone())
        });
        let line = |(to, entry): (_, Entry)| {
            let body = entry.data().cloned();
            Line { to, entry, body }
        };
        Self::Outputs { outputs: own.chain(sent).map(line).collect(), ended: last.ended }
    }

    /// What `outputs` make of a step: the checkpoint that it would have committed.
    pub(super) fn replayed(outputs: Vec<Output>, step: &Planned) -> Result<Replayed, Error> {
        if outputs.iter().any(|output| output.uri.is_some()) {
            let reason = "an output of it has a `uri`, and a replay fetches nothing";
            return Ok(Replayed::Incomplete(reason.to_owned()));
        }
        let end = end_of(&outputs);
        let (mut own, mut sent) = (Vec::new(), Vec::new());
        for Output { body, attributes, target, .. } in outputs {
            let draft = Draft::push(body.clone(), attributes);
            let (draft, lines) = match target {
                None => (draft, &mut own),
                Some(_) => {
                    let index = u32::try_from(sent.len()).unwrap_or(u32::MAX);
                    let (session, version) = (step.point.session, step.point.version);
                    let origin = Some(Origin { session, version, index });
                    (Draft { origin, ..draft }, &mut sent)
                }
            };
            match draft.build() {
                Ok(entry) => lines.push(Line { to: target, entry, body: Some(body) }),
                Err(error @ pugmark_log::Error::EntryTooLong { .. }) => {
                    return Ok(Replayed::failed(&error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let ended = match end {
            StepEnd::Continue if own.is_empty() => Ended::Empty,
            StepEnd::Continue => Ended::No,
            StepEnd::Pause => Ended::Pause,
            StepEnd::Sleep(ms) => Ended::Sleep(step.created.plus_millis(ms)),
        };
        own.append(&mut sent);
        Ok(Replayed::Answer(Self::Outputs { outputs: own, ended }))
    }

    /// Loads bodies that are not at hand, to be shown. What cannot be loaded is left out.
    pub(super) async fn load_bodies(&mut self, bucket: &Bucket) {
        let Self::Outputs { outputs, .. } = self else { return };
        for line in outputs.iter_mut().filter(|line| line.body.is_none()) {
            if line.entry.size() <= SHOWN_BODY {
                line.body = bucket.get_object(&line.entry.hash()).await.ok();
            }
        }
    }
}

impl Replayed {
    /// The answer of a handler that failed.
    pub(super) fn failed(error: &dyn std::error::Error) -> Self {
        Self::Answer(Answer::Failed { message: message_of(error) })
    }

    /// What a step came to that the host could not run; the error again where that is not the
    /// step's own affair.
    pub(super) fn host(error: Error) -> Result<Self, Error> {
        match error {
            Error::Log(pugmark_log::Error::ObjectNotFound { .. })
            | Error::UnreadableEffect { .. }
            | Error::ObjectTooLarge { .. } => Ok(Self::Incomplete(message_of(&error))),
            error => Err(error),
        }
    }
}

/// An error and its causes, on one line.
pub(super) fn message_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let message = error.to_string();
        if !text.ends_with(&message) {
            text = format!("{text}: {message}");
        }
        source = error.source();
    }
    text
}

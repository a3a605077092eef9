//! What a checkpoint recorded of its step, as replay reads it: tolerant of what it does not know.

use std::collections::BTreeMap;

use pugmark_log::{Digest, Recorded, Timestamp, layout};
use serde::Deserialize;

use crate::effects::{Effect, Recorded as Effects};
use crate::error::Error;

/// The kind of a step that ran in the sandbox.
pub(super) const COMPONENT: &str = "component";

/// The kind of a step of a subprocess that was started for it.
pub(super) const PROCESS: &str = "process";

/// A step's record; `docs/storage-layout.md` specifies it.
#[derive(Deserialize)]
pub(super) struct StepRecord {
    pub kind: String,
    pub handler: String,
    #[serde(default)]
    pub component: Option<Digest>,
    pub n: u64,
    pub log: Digest,
    pub clock: Timestamp,
    pub snapshot: u64,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    #[serde(default)]
    pub lifecycle: bool,
    #[serde(default)]
    pub abi: Option<u32>,
    #[serde(default)]
    pub born: Option<u64>,
    #[serde(default)]
    effects: Option<Vec<Effect>>,
}

impl StepRecord {
    /// The record of the step that made a version; `None` if none did.
    ///
    /// # Errors
    /// If it is not a record, or contradicts the rest of its snapshot.
    pub(super) fn of(recorded: &Recorded) -> Result<Option<Self>, Error> {
        let Some(raw) = &recorded.step else { return Ok(None) };
        let record: Self =
            serde_json::from_str(raw.get()).map_err(|error| damaged(recorded, error))?;
        let last = &recorded.last;
        let agrees = last.version == recorded.version
            && last.seen == record.n
            && last.added == recorded.objects.len() as u64
            && record.snapshot < recorded.version;
        if agrees {
            Ok(Some(record))
        } else {
            Err(damaged(recorded, "its step is not what `last` and `objects` tell of it"))
        }
    }

    /// What it got from outside.
    pub(super) fn take_effects(&mut self) -> Effects {
        self.effects.take().map(Into::into)
    }
}

/// The error that a version does not hold together.
pub(super) fn damaged(recorded: &Recorded, reason: impl ToString) -> Error {
    let key = layout::snapshot(&recorded.session, recorded.version).to_string();
    pugmark_log::Error::Corrupt { key, reason: reason.to_string() }.into()
}

//! A session's snapshots, one after the other, as `log -A` lists them.

use std::fmt::Write as _;

use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{Bucket, Ended, Entry, Recorded, SessionId, SnapshotKind, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::commands::objects;
use crate::error::Error;
use crate::output::{counted, escape_line, to_json_lines, to_stdout};
use crate::style::{Style, paint};
use crate::view::{EntryView, kind_name};

/// How many snapshots are read at a time.
const PARALLEL: usize = 32;
/// How many are written at a time.
const CHUNK: usize = 64;

/// Which snapshots of a session are listed.
pub struct Range {
    /// The session.
    pub session: SessionId,
    /// The first version.
    pub from: u64,
    /// The newest version.
    pub tip: u64,
}

impl Range {
    /// The newest `newest` versions up to `tip` of those since `since`.
    ///
    /// # Errors
    /// If a snapshot cannot be read.
    pub async fn find(
        bucket: &Bucket,
        (session, tip): (SessionId, u64),
        newest: Option<u64>,
        since: Option<Timestamp>,
    ) -> Result<Self, Error> {
        let mut from = (tip + 1).saturating_sub(newest.unwrap_or(u64::MAX));
        if let Some(since) = since {
            // A version is never older than the one before it.
            let mut end = tip + 1;
            while from < end {
                let middle = from + (end - from) / 2;
                if bucket.snapshot_named(&session, middle).await?.created < since {
                    from = middle + 1;
                } else {
                    end = middle;
                }
            }
        }
        Ok(Self { session, from, tip })
    }

    /// Lists them as text, with `rail` before each line.
    ///
    /// # Errors
    /// If one cannot be read, or written out.
    pub async fn draw(&self, bucket: &Bucket, rail: &str) -> Result<(), Error> {
        if self.from > 0 {
            let left_out = format!("… {}", counted(self.from, "older version"));
            to_stdout(|out| writeln!(out, "{rail}{}", paint(Style::Dim, &left_out)))?;
        }
        let indent = format!("{rail}    ");
        self.each_chunk(bucket, |chunk| {
            to_stdout(|out| {
                for snapshot in chunk {
                    writeln!(out, "{rail}{}", line(&snapshot.version))?;
                    for entry in &snapshot.objects {
                        objects::line(out, &indent, entry)?;
                    }
                }
                Ok(())
            })?;
            Ok(())
        })
        .await
    }

    /// Lists them as JSON, one a line.
    ///
    /// # Errors
    /// If one cannot be read, or written out.
    pub async fn print_json(&self, bucket: &Bucket) -> Result<(), Error> {
        self.each_chunk(bucket, |chunk| to_json_lines(chunk.iter().map(View::of))).await
    }

    async fn each_chunk(
        &self,
        bucket: &Bucket,
        mut show: impl FnMut(&[Shown]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let session = self.session;
        let read = (self.from..=self.tip)
            .map(|version| async move { Shown::read(bucket, &session, version).await });
        let mut chunks = futures::stream::iter(read).buffered(PARALLEL).try_ready_chunks(CHUNK);
        loop {
            match chunks.try_next().await {
                Ok(Some(chunk)) => show(&chunk)?,
                Ok(None) => return Ok(()),
                Err(error) => {
                    show(&error.0)?;
                    return Err(error.1.into());
                }
            }
        }
    }
}

/// A version, with the entries that it first made durable; its log is not parsed.
struct Shown {
    version: Recorded,
    objects: Vec<Entry>,
}

impl Shown {
    async fn read(
        bucket: &Bucket,
        session: &SessionId,
        version: u64,
    ) -> Result<Self, pugmark_log::Error> {
        let Some(recorded) = bucket.recorded(session, version).await? else {
            let tip = bucket.tip(session, None).await?.version;
            return Err(pugmark_log::Error::VersionNotFound { session: *session, version, tip });
        };
        let objects = recorded.objects.iter().cloned().map(Entry::parse);
        let objects = objects.collect::<Result<_, _>>().map_err(|error| {
            let key = pugmark_log::layout::snapshot(session, version).to_string();
            pugmark_log::Error::Corrupt { key, reason: error.to_string() }
        })?;
        Ok(Self { version: recorded, objects })
    }
}

/// What is shown of a step's record.
#[derive(serde::Deserialize, Serialize)]
pub struct StepView {
    /// The handler's name.
    pub handler: String,
    /// The version that the step began on.
    pub snapshot: u64,
    /// How many answers it got from outside; left out where it could ask nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "count")]
    pub effects: Option<usize>,
}

/// What a step got from outside, as far as it is counted.
fn count<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let effects = <Vec<serde::de::IgnoredAny> as serde::Deserialize>::deserialize(deserializer)?;
    Ok(Some(effects.len()))
}

/// How many answers a trace holds.
fn answers(trace: &RawValue) -> usize {
    #[derive(serde::Deserialize)]
    struct Trace {
        #[serde(default)]
        effects: Vec<serde::de::IgnoredAny>,
    }
    serde_json::from_str::<Trace>(trace.get()).map_or(0, |trace| trace.effects.len())
}

impl StepView {
    /// From the record of the step that made a snapshot, if one did.
    pub fn of(step: Option<&RawValue>) -> Option<Self> {
        serde_json::from_str(step?.get()).ok()
    }
}

/// A snapshot as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    r#type: &'static str,
    session: SessionId,
    version: u64,
    kind: &'static str,
    created: Timestamp,
    events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<StepView>,
    /// How the step ended: `no` (it goes on), `pause`, `sleep` or `empty`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    /// How many answers a step that is under way has recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<usize>,
    objects: Vec<EntryView<'a>>,
}

impl<'a> View<'a> {
    fn of(shown: &'a Shown) -> Self {
        let snapshot = &shown.version;
        let step = StepView::of(snapshot.step.as_deref());
        let (ended, until) = match snapshot.last.ended {
            Ended::No => ("no", None),
            Ended::Pause => ("pause", None),
            Ended::Sleep(until) => ("sleep", Some(until)),
            Ended::Empty => ("empty", None),
        };
        Self {
            r#type: "snapshot",
            session: snapshot.session,
            version: snapshot.version,
            kind: kind_name(snapshot.kind),
            created: snapshot.created,
            events: snapshot.count,
            ended: step.is_some().then_some(ended),
            until: until.filter(|_| step.is_some()),
            trace: snapshot.trace.as_deref().map(answers),
            step,
            objects: shown.objects.iter().map(|entry| EntryView::of(entry, None)).collect(),
        }
    }
}

fn line(snapshot: &Recorded) -> String {
    let kind = match snapshot.kind {
        SnapshotKind::Checkpoint => kind_name(snapshot.kind).to_owned(),
        SnapshotKind::Provisional => paint(Style::Waiting, kind_name(snapshot.kind)),
    };
    let created = paint(Style::Dim, &snapshot.created.to_string());
    let mut line = format!("v{}  {created}  {kind}", snapshot.version);
    if let Some(trace) = &snapshot.trace {
        let answers = counted(answers(trace) as u64, "answer");
        let _ = write!(line, "  a step under way, {answers} recorded");
    }
    if snapshot.step.is_none() {
        return line;
    }
    if let Some(step) = StepView::of(snapshot.step.as_deref()) {
        let _ = write!(line, "  step by {} on v{}", escape_line(&step.handler), step.snapshot);
        if let Some(effects) = step.effects.filter(|effects| *effects > 0) {
            let _ = write!(line, " with {}", counted(effects as u64, "answer"));
        }
    }
    match snapshot.last.ended {
        Ended::No => {}
        Ended::Pause => line.push_str(", paused"),
        Ended::Sleep(until) => {
            let _ = write!(line, ", sleeps until {until}");
        }
        Ended::Empty => line.push_str(", nothing to add"),
    }
    line
}

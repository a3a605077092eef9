//! How a loop goes: for a person on standard error, for a program on standard output.

use std::fmt::Write as _;

use pugmark_log::{Digest, SessionId, Snapshot, Timestamp};
use pugmark_runtime::{Committed, Finished, StepSpan, Watch};
use serde::Serialize;

use crate::commands::tree::state_name;
use crate::error::Error;
#[cfg(feature = "otel")]
use crate::otel::Exporter;
use crate::output::{counted, escape_line, is_json, note, to_json};
use crate::view::{EntryView, StateView};

/// Tells whoever runs the loop how it goes.
pub struct Progress {
    /// What went wrong in telling it.
    failure: Option<Error>,
    #[cfg(feature = "otel")]
    exporter: Option<Exporter>,
}

/// A step as a JSON document.
#[derive(Serialize)]
struct StepView<'a> {
    session: SessionId,
    version: u64,
    objects: Vec<EntryView<'a>>,
    /// How many outputs go to other sessions.
    sent: usize,
}

/// The end of a loop as a JSON document.
#[derive(Serialize)]
struct EndView {
    session: SessionId,
    version: u64,
    steps: u64,
    #[serde(flatten)]
    state: StateView,
}

impl Progress {
    /// Exports spans, too, where this program was built for it and the environment asks for it.
    ///
    /// # Errors
    /// If the environment says where in a way that cannot be understood.
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            failure: None,
            #[cfg(feature = "otel")]
            exporter: Exporter::from_environment()?,
        })
    }

    /// Tells how the loop ended, unless it failed.
    ///
    /// # Errors
    /// If standard output could not be written.
    pub async fn finish(self, finished: Option<&Finished>) -> Result<(), Error> {
        #[cfg(feature = "otel")]
        if let Some(exporter) = self.exporter {
            exporter.finish().await;
        }
        #[cfg(not(feature = "otel"))]
        std::future::ready(()).await;
        if let Some(Finished { tip, steps }) = finished {
            note(&format!("{}, {}", counted(*steps, "step"), state_name(tip)));
            if is_json() {
                let (session, version) = (tip.session, tip.version);
                to_json(&EndView { session, version, steps: *steps, state: StateView::of(tip) })?;
            }
        }
        self.failure.map_or(Ok(()), Err)
    }
}

impl Watch for Progress {
    fn committed(&mut self, committed: &Committed) {
        let snapshot = &committed.snapshot;
        note(&line(snapshot));
        if is_json() && self.failure.is_none() {
            let view = StepView {
                session: snapshot.session,
                version: snapshot.version,
                objects: snapshot.objects.iter().map(|entry| EntryView::of(entry, None)).collect(),
                sent: snapshot.last.outbox.len(),
            };
            self.failure = to_json(&view).err();
        }
    }

    fn delivered(&mut self, outputs: usize) {
        let outputs = counted(outputs as u64, "output");
        note(&format!("delivered {outputs} to other sessions"));
    }

    fn ended(&mut self, span: StepSpan) {
        #[cfg(feature = "otel")]
        if let Some(exporter) = &self.exporter {
            exporter.send(span);
        }
        #[cfg(not(feature = "otel"))]
        drop(span);
    }

    fn sleeps(&mut self, until: Timestamp) {
        note(&format!("sleeping until {until}"));
    }
}

/// A checkpoint with what it made durable, on a line.
fn line(snapshot: &Snapshot) -> String {
    let mut line = format!("v{}", snapshot.version);
    for entry in &snapshot.objects {
        if entry.is_pause() {
            let reason = entry.data().map_or_else(String::new, |data| {
                format!(": {}", escape_line(&String::from_utf8_lossy(data)))
            });
            let _ = write!(line, "  pause{reason}");
            continue;
        }
        let _ = write!(line, "  {}", short(&entry.hash()));
        if let Some(name) = &entry.attributes().name {
            let _ = write!(line, " {}", escape_line(name));
        }
    }
    line
}

/// The beginning of a hash, enough to find it again.
fn short(hash: &Digest) -> String {
    hash.hex().chars().take(12).collect()
}

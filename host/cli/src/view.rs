//! What `--json` shows: structures of their own, so that what is stored may change without them.

use std::collections::BTreeMap;

use pugmark_log::{
    Digest, Ended, Entry, Event, SessionId, Snapshot, SnapshotKind, State, Timestamp,
};
use serde::Serialize;

/// A session, where it is all there is to say.
#[derive(Serialize)]
pub struct SessionOnly {
    /// Its id.
    pub session: SessionId,
}

/// A version of a session.
#[derive(Serialize, Clone, Copy)]
pub struct Point {
    /// The session.
    pub session: SessionId,
    /// The version.
    pub version: u64,
}

impl Point {
    /// The version that a snapshot captures.
    pub fn of(snapshot: &Snapshot) -> Self {
        Self { session: snapshot.session, version: snapshot.version }
    }
}

/// An event of a log.
#[derive(Serialize)]
pub struct EntryView<'a> {
    /// Where it stands in the log, from 0, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The body's address.
    pub hash: Digest,
    /// The body's length in bytes.
    pub size: u64,
    /// `push` or `wake`.
    pub event: &'static str,
    /// `inline` or `object`.
    pub stored: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_encoding: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_url: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Point>,
}

impl<'a> EntryView<'a> {
    /// The view of an entry.
    pub fn of(entry: &'a Entry, position: Option<u64>) -> Self {
        let attributes = entry.attributes();
        Self {
            position,
            hash: entry.hash(),
            size: entry.size(),
            event: event_name(entry.event()),
            stored: if entry.data().is_some() { "inline" } else { "object" },
            name: attributes.name.as_deref(),
            content_type: attributes.content_type.as_deref(),
            content_encoding: attributes.content_encoding.as_deref(),
            schema_url: attributes.schema_url.as_deref(),
            metadata: &attributes.metadata,
            id: entry.id(),
            origin: entry
                .origin()
                .map(|origin| Point { session: origin.session, version: origin.version }),
        }
    }
}

/// What a session waits for.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateView {
    /// `due`, `sleeping`, `paused` or `at-rest`.
    pub state: &'static str,
    /// When it wakes, if it sleeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl StateView {
    /// The state of a session whose newest snapshot this is.
    pub fn of(tip: &Snapshot) -> Self {
        let (state, until) = match tip.state() {
            State::Due => ("due", None),
            State::Sleeping { until } => ("sleeping", Some(until)),
            State::AtRest if tip.last.ended == Ended::Pause => ("paused", None),
            State::AtRest => ("at-rest", None),
        };
        Self { state, until }
    }
}

impl std::fmt::Display for StateView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.until {
            Some(until) => write!(f, "sleeping until {until}"),
            None => f.write_str(&self.state.replace('-', " ")),
        }
    }
}

/// The word for a kind of snapshot.
pub fn kind_name(kind: SnapshotKind) -> &'static str {
    match kind {
        SnapshotKind::Checkpoint => "checkpoint",
        SnapshotKind::Provisional => "provisional",
    }
}

fn event_name(event: Event) -> &'static str {
    match event {
        Event::Push => "push",
        Event::Wake => "wake",
        Event::Other => "other",
    }
}

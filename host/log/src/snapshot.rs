//! Snapshots: immutable, numbered captures of a session, a line of JSON each.

use bytes::Bytes;
use object_store::path::Path;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::entry::Entry;
use crate::error::Error;
use crate::layout;
use crate::session_id::SessionId;
use crate::timestamp::Timestamp;
use crate::vector::Vector;

/// Which programs may read what was written, and which may extend it: each has to know the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Format {
    /// Guards readers.
    read: u32,
    /// Guards writers: a program must not extend what it would silently truncate.
    write: u32,
}

impl Format {
    /// What this program writes.
    pub(crate) const CURRENT: Self = Self { read: 1, write: 1 };
}

/// The newest format that this program can read.
const READS: u32 = 1;

/// Parses a document of ours, telling a newer format from damage whatever else it changed.
pub(crate) fn parse_readable<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
    key: &Path,
    format: impl Fn(&T) -> Format,
) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Probe {
        format: Format,
    }
    let parsed = serde_json::from_slice::<T>(bytes);
    let found = match &parsed {
        Ok(document) => Some(format(document)),
        Err(_) => serde_json::from_slice::<Probe>(bytes).ok().map(|probe| probe.format),
    };
    if let Some(Format { read: found, .. }) = found.filter(|format| format.read > READS) {
        return Err(Error::NewerFormat { key: key.to_string(), found, supported: READS });
    }
    parsed.map_err(|source| Error::corrupt(key, source))
}

/// What kind of capture a snapshot is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotKind {
    /// The durable kind that the runtime reacts to.
    Checkpoint,
    /// Holds what arrived while a step is due or under way.
    Provisional,
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// With events, and nothing that stops the handler from going on.
    No,
    /// With a pause: the session rests until something is pushed.
    Pause,
    /// With a sleep until this time.
    Sleep(Timestamp),
    /// Without an entry of its own.
    Empty,
}

/// The last step of a session.
#[derive(Clone, Debug)]
pub struct LastStep {
    /// The version of its checkpoint.
    pub version: u64,
    /// How many entries it saw.
    pub seen: u64,
    /// How many entries it added.
    pub added: u64,
    /// How it ended.
    pub ended: Ended,
    /// What it sends elsewhere and is not delivered yet.
    pub outbox: Option<Box<RawValue>>,
}

/// What a session waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A step.
    Due,
    /// A point in time, or a push.
    Sleeping {
        /// When it wakes.
        until: Timestamp,
    },
    /// A push.
    AtRest,
}

/// An immutable capture of what a session contains.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) format: Format,
    pub(crate) digest: Digest,
    pub(crate) nonce: String,
    /// The session.
    pub session: SessionId,
    /// Its number, from 0.
    pub version: u64,
    /// Checkpoint or provisional.
    pub kind: SnapshotKind,
    /// When it was made; never before its predecessor.
    pub created: Timestamp,
    /// The digest of the bytes of the snapshot that it follows; in a fork's version 0, of the one
    /// that was forked.
    pub parent: Option<Digest>,
    /// The entries that this version first made durable.
    pub objects: Vec<Entry>,
    /// The whole log.
    pub log: Vector,
    /// The last step.
    pub last: LastStep,
    /// What the handler that made this version could see; written by the runtime.
    pub step: Option<Box<RawValue>>,
    /// What a step that is under way has recorded of its effects.
    pub trace: Option<Box<RawValue>>,
}

/// The persisted form as it is read.
#[derive(Deserialize)]
struct Record<'a> {
    format: Format,
    session: SessionId,
    version: u64,
    kind: SnapshotKind,
    nonce: String,
    created: Timestamp,
    #[serde(default)]
    parent: Option<Digest>,
    #[serde(borrow)]
    objects: Vec<&'a RawValue>,
    #[serde(borrow)]
    log: &'a RawValue,
    last: LastRecord,
    #[serde(default)]
    step: Option<Box<RawValue>>,
    #[serde(default)]
    trace: Option<Box<RawValue>>,
}

/// The persisted form of [`LastStep`]; the field order is the persisted order.
#[derive(Serialize, Deserialize)]
struct LastRecord {
    version: u64,
    n: u64,
    k: u64,
    ended: EndedRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wake: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outbox: Option<Box<RawValue>>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum EndedRecord {
    No,
    Pause,
    Sleep,
    Empty,
}

impl LastStep {
    fn to_record(&self) -> LastRecord {
        let (ended, wake) = match self.ended {
            Ended::No => (EndedRecord::No, None),
            Ended::Pause => (EndedRecord::Pause, None),
            Ended::Sleep(until) => (EndedRecord::Sleep, Some(until)),
            Ended::Empty => (EndedRecord::Empty, None),
        };
        let (version, n, k) = (self.version, self.seen, self.added);
        LastRecord { version, n, k, ended, wake, outbox: self.outbox.clone() }
    }

    fn from_record(record: LastRecord) -> Result<Self, &'static str> {
        let ended = match (record.ended, record.wake) {
            (EndedRecord::No, _) => Ended::No,
            (EndedRecord::Pause, _) => Ended::Pause,
            (EndedRecord::Sleep, Some(until)) => Ended::Sleep(until),
            (EndedRecord::Sleep, None) => return Err("it sleeps without a time to wake"),
            (EndedRecord::Empty, _) => Ended::Empty,
        };
        let LastRecord { version, n, k, outbox, .. } = record;
        Ok(Self { version, seen: n, added: k, ended, outbox })
    }
}

impl Snapshot {
    /// What the session waits for: the tip alone tells.
    #[must_use]
    pub fn state(&self) -> State {
        if self.log.count() > self.last.seen + self.last.added {
            return State::Due;
        }
        match self.last.ended {
            Ended::No => State::Due,
            Ended::Sleep(until) => State::Sleeping { until },
            Ended::Pause | Ended::Empty => State::AtRest,
        }
    }

    /// The digest of this snapshot's bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The writer's nonce: what tells its bytes from any other writer's.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// The entries that came after what the last step saw and added.
    #[must_use]
    pub fn unseen(&self) -> u64 {
        self.log.count().saturating_sub(self.last.seen + self.last.added)
    }

    /// Fails if this program would lose something by extending the session.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        let supported = Format::CURRENT.write;
        if self.format.write > supported {
            let (session, found) = (self.session, self.format.write);
            return Err(Error::NewerWriter { session, found, supported });
        }
        Ok(())
    }

    /// The persisted bytes: one line of JSON with its line break. Sets the digest.
    pub(crate) fn seal(&mut self) -> Result<Bytes, Error> {
        let mut line = Line::default();
        line.field("format", &self.format)?;
        line.field("session", &self.session)?;
        line.field("version", &self.version)?;
        line.field("kind", &self.kind)?;
        line.field("nonce", &self.nonce)?;
        line.field("created", &self.created)?;
        if let Some(parent) = &self.parent {
            line.field("parent", parent)?;
        }
        line.raw("objects", &lines_as_array(&self.objects));
        line.raw("log", &self.log.to_json());
        line.field("last", &self.last.to_record())?;
        if let Some(step) = &self.step {
            line.raw("step", step.get().as_bytes());
        }
        if let Some(trace) = &self.trace {
            line.raw("trace", trace.get().as_bytes());
        }
        line.0.extend_from_slice(b"}\n");
        self.digest = Digest::of(&line.0);
        Ok(line.0.into())
    }

    /// Reads a snapshot from its bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if they are not the snapshot that its key says; [`Error::NewerFormat`].
    pub(crate) fn parse(bytes: &Bytes, session: SessionId, version: u64) -> Result<Self, Error> {
        let key = layout::snapshot(&session, version);
        let corrupt = |reason: String| Error::corrupt(&key, reason);
        let record: Record<'_> = parse_readable(bytes, &key, |record: &Record<'_>| record.format)?;
        if (record.session, record.version) != (session, version) {
            let found = format!("it is version {} of session {}", record.version, record.session);
            return Err(corrupt(found));
        }
        let entry = |raw: &&RawValue| Entry::parse(bytes.slice_ref(raw.get().as_bytes()));
        let objects: Vec<Entry> = record
            .objects
            .iter()
            .map(entry)
            .collect::<Result<_, _>>()
            .map_err(|error| corrupt(error.to_string()))?;
        let log = Vector::parse(bytes, record.log).map_err(|error| corrupt(error.to_string()))?;
        let last =
            LastStep::from_record(record.last).map_err(|error| corrupt(error.to_string()))?;
        let total = last.seen.checked_add(last.added);
        if total.is_none_or(|total| total > log.count()) {
            return Err(corrupt("its last step counts more entries than its log".to_string()));
        }
        if last.version > version {
            return Err(corrupt("its last step is of a later version".to_string()));
        }
        Ok(Self {
            format: record.format,
            digest: Digest::of(bytes),
            nonce: record.nonce,
            session,
            version,
            kind: record.kind,
            created: record.created,
            parent: record.parent,
            objects,
            log,
            last,
            step: record.step,
            trace: record.trace,
        })
    }
}

/// A JSON array of entries, each in its own bytes.
pub(crate) fn lines_as_array(entries: &[Entry]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(entry.line());
    }
    out.push(b']');
    out
}

/// A JSON object under construction: entries go in verbatim, in their canonical bytes.
#[derive(Default)]
struct Line(Vec<u8>);

impl Line {
    fn field(&mut self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let value = serde_json::to_vec(value).map_err(|source| Error::Encode { source })?;
        self.raw(name, &value);
        Ok(())
    }

    fn raw(&mut self, name: &str, value: &[u8]) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
        self.0.extend_from_slice(value);
    }
}

impl Bucket {
    /// Reads one version of a session; `None` if there is no such version.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NewerFormat`] or [`Error::Store`].
    pub async fn snapshot(
        &self,
        session: &SessionId,
        version: u64,
    ) -> Result<Option<Snapshot>, Error> {
        let bytes = self.get_file(&layout::snapshot(session, version)).await?;
        bytes.map(|bytes| Snapshot::parse(&bytes, *session, version)).transpose()
    }

    /// Reads one version of a session that the caller names.
    ///
    /// # Errors
    /// [`Error::VersionNotFound`] or [`Error::SessionNotFound`] if there is none, and as
    /// [`Bucket::snapshot`].
    pub async fn snapshot_named(
        &self,
        session: &SessionId,
        version: u64,
    ) -> Result<Snapshot, Error> {
        if let Some(snapshot) = self.snapshot(session, version).await? {
            return Ok(snapshot);
        }
        let tip = self.tip(session, None).await?.version;
        Err(Error::VersionNotFound { session: *session, version, tip })
    }
}

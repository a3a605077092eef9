//! Snapshots: immutable, numbered captures of a session, a line of JSON each.

use bytes::Bytes;
use object_store::path::Path;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::entry::Entry;
use crate::error::Error;
use crate::last_step::{Ended, LastRecord, LastStep};
use crate::layout;
use crate::session_id::SessionId;
use crate::timestamp::Timestamp;
use crate::tombstone::Tombstone;
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
    /// Of all documents but those below.
    pub(crate) const PLAIN: Self = Self { read: 1, write: 1 };
    /// Of a snapshot with an outbox, which a writer that does not know of it would drop.
    const OUTBOX: Self = Self { read: 1, write: 2 };
    /// Of a snapshot with a trace, which a writer that does not know of it would let a step start
    /// over that has got something from outside already.
    const TRACE: Self = Self { read: 1, write: 3 };
    /// Of what is left of a removed session.
    pub(crate) const REMOVED: Self = Self { read: 2, write: 2 };
}

/// The newest format that this program can read.
const READS: u32 = 2;
/// The newest format that this program can write.
const WRITES: u32 = 3;

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

/// What a session waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A step, or that the last step's outbox is delivered.
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
    /// What a step that is under way has got from outside the session; written by the runtime.
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
    #[serde(borrow)]
    last: LastRecord<'a>,
    #[serde(default)]
    step: Option<Box<RawValue>>,
    #[serde(default)]
    trace: Option<Box<RawValue>>,
}

impl Snapshot {
    /// What the session waits for: the tip alone tells.
    #[must_use]
    pub fn state(&self) -> State {
        if self.unseen() > 0 || !self.last.outbox.is_empty() {
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
        let supported = WRITES;
        if self.format.write > supported {
            let (session, found) = (self.session, self.format.write);
            return Err(Error::NewerWriter { session, found, supported });
        }
        Ok(())
    }

    /// The persisted bytes: one line of JSON with its line break. Sets the digest.
    pub(crate) fn seal(&mut self) -> Result<Bytes, Error> {
        self.format = match (&self.trace, self.last.outbox.is_empty()) {
            (Some(_), _) => Format::TRACE,
            (None, false) => Format::OUTBOX,
            (None, true) => Format::PLAIN,
        };
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
        line.raw("last", &self.last.to_json()?);
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
    /// [`Error::Corrupt`] if they are not the snapshot that its key says; [`Error::NewerFormat`];
    /// [`Error::SessionRemoved`] if they say that.
    pub(crate) fn parse(bytes: &Bytes, session: SessionId, version: u64) -> Result<Self, Error> {
        let key = layout::snapshot(&session, version);
        let corrupt = |reason: String| Error::corrupt(&key, reason);
        let in_place = |its_session: SessionId, its_version: u64| {
            let found = format!("it is version {its_version} of session {its_session}");
            if (its_session, its_version) == (session, version) {
                Ok(())
            } else {
                Err(corrupt(found))
            }
        };
        let record = match parse_readable(bytes, &key, |record: &Record<'_>| record.format) {
            Ok(record) => record,
            Err(error) => {
                let Some(tombstone) = Tombstone::parse(bytes, &key) else { return Err(error) };
                in_place(tombstone.session, tombstone.version)?;
                return Err(Error::SessionRemoved { session });
            }
        };
        in_place(record.session, record.version)?;
        let entry = |raw: &&RawValue| Entry::parse(bytes.slice_ref(raw.get().as_bytes()));
        let objects: Vec<Entry> = record
            .objects
            .iter()
            .map(entry)
            .collect::<Result<_, _>>()
            .map_err(|error| corrupt(error.to_string()))?;
        let log = Vector::parse(bytes, record.log).map_err(|error| corrupt(error.to_string()))?;
        let last = LastStep::from_record(bytes, record.last).map_err(corrupt)?;
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
    let bytes: usize = entries.iter().map(|entry| entry.line().len() + 1).sum();
    let mut out = Vec::with_capacity(bytes + 1);
    out.push(b'[');
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
    /// [`Error::SessionRemoved`], [`Error::Corrupt`], [`Error::NewerFormat`] or [`Error::Store`].
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

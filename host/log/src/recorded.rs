//! Versions as replay and listings read them, without parsing the log that each one captures;
//! and a log that grows entry by entry, to compare its digest with those that steps recorded.
//!
//! Nothing here is written to the bucket.

use bytes::Bytes;
use object_store::path::Path;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::entry::Entry;
use crate::error::Error;
use crate::last_step::{LastRecord, LastStep};
use crate::layout;
use crate::session_id::SessionId;
use crate::snapshot::{Format, Snapshot, SnapshotKind, parse_readable};
use crate::timestamp::Timestamp;
use crate::vector::Vector;

/// A version of a session, but for the log that it captures.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The session.
    pub session: SessionId,
    /// Its number, from 0.
    pub version: u64,
    /// Checkpoint or provisional.
    pub kind: SnapshotKind,
    /// When it was made.
    pub created: Timestamp,
    /// How many entries the log that it captures has.
    pub count: u64,
    /// The bytes of the entries that this version first made durable. Not checked: they are to be
    /// compared with those of the log.
    pub objects: Vec<Bytes>,
    /// The last step.
    pub last: LastStep,
    /// What the handler that made this version could see; `None` if no handler did.
    pub step: Option<Box<RawValue>>,
    /// What a step that is under way has got from outside the session.
    pub trace: Option<Box<RawValue>>,
}

/// The persisted form as far as it is read.
#[derive(Deserialize)]
struct Record<'a> {
    format: Format,
    session: SessionId,
    version: u64,
    kind: SnapshotKind,
    created: Timestamp,
    log: Counted,
    #[serde(borrow)]
    objects: Vec<&'a RawValue>,
    #[serde(borrow)]
    last: LastRecord<'a>,
    #[serde(default)]
    step: Option<Box<RawValue>>,
    #[serde(default)]
    trace: Option<Box<RawValue>>,
}

/// The log as far as it is read.
#[derive(Deserialize)]
struct Counted {
    count: u64,
}

impl Recorded {
    /// Reads it from a snapshot's bytes; `None` if they are not those of an ordinary snapshot.
    fn parse(bytes: &Bytes, key: &Path, session: SessionId, version: u64) -> Option<Self> {
        let record = parse_readable(bytes, key, |record: &Record<'_>| record.format).ok()?;
        if (record.session, record.version) != (session, version) {
            return None;
        }
        let object = |raw: &&RawValue| bytes.slice_ref(raw.get().as_bytes());
        Some(Self {
            session,
            version,
            kind: record.kind,
            created: record.created,
            count: record.log.count,
            objects: record.objects.iter().map(object).collect(),
            last: LastStep::from_record(bytes, record.last).ok()?,
            step: record.step,
            trace: record.trace,
        })
    }
}

impl Bucket {
    /// Reads one version of a session but for its log; `None` if there is no such version.
    ///
    /// # Errors
    /// As [`Bucket::snapshot`].
    pub async fn recorded(
        &self,
        session: &SessionId,
        version: u64,
    ) -> Result<Option<Recorded>, Error> {
        let key = layout::snapshot(session, version);
        let Some(bytes) = self.get_file(&key).await? else { return Ok(None) };
        match Recorded::parse(&bytes, &key, *session, version) {
            Some(recorded) => Ok(Some(recorded)),
            // The thorough reader says what is wrong.
            None => match Snapshot::parse(&bytes, *session, version) {
                Err(error) => Err(error),
                Ok(_) => Err(Error::corrupt(&key, "two readers do not agree on it")),
            },
        }
    }
}

/// A log that grows entry by entry and is stored nowhere.
#[derive(Default)]
pub struct GrowingLog(Vector);

impl GrowingLog {
    /// Appends an entry.
    pub fn push(&mut self, entry: Entry) {
        self.0.append([entry], &mut Vec::new());
    }

    /// How many entries it has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// The digest that names the sequence of entries, as [`Vector::root`].
    #[must_use]
    pub fn root(&self) -> Digest {
        self.0.root()
    }
}

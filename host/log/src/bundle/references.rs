//! What snapshots and nodes refer to: the same walk tells a writer which objects a bundle needs, and
//! a reader which ones it must find, in which order.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use memchr::memmem;
use object_store::path::Path;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::digest::Digest;
use crate::error::Error;
use crate::layout;
use crate::read::lines;
use crate::session_id::SessionId;
use crate::snapshot::{Format, parse_readable};
use crate::vector::FAN_OUT;

/// More levels than a log can have.
const MAX_LEVELS: usize = 13;

/// Objects that are needed. Nodes come first, those of higher levels before lower ones, so that
/// every node is known by its level before it comes; then all else.
#[derive(Default)]
pub(super) struct References {
    levels: Vec<BTreeSet<Digest>>,
    nodes: HashSet<Digest>,
    bodies: BTreeSet<Digest>,
    /// Digests in records that may be those of objects, or of something else.
    possible: BTreeSet<Digest>,
    last_levels: String,
}

/// What is read of a snapshot.
#[derive(Deserialize)]
struct SnapshotRecord<'a> {
    format: Format,
    session: SessionId,
    version: u64,
    #[serde(default)]
    parent: Option<Digest>,
    #[serde(borrow)]
    objects: Vec<EntryRecord<'a>>,
    #[serde(borrow)]
    log: LogRecord<'a>,
    #[serde(borrow)]
    last: LastRecord<'a>,
    #[serde(borrow, default)]
    step: Option<&'a RawValue>,
    #[serde(borrow, default)]
    trace: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EntryRecord<'a> {
    hash: Digest,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct LogRecord<'a> {
    #[serde(borrow)]
    levels: &'a RawValue,
    #[serde(borrow)]
    tail: &'a RawValue,
}

#[derive(Deserialize)]
struct LastRecord<'a> {
    #[serde(borrow, default)]
    outbox: Vec<ItemRecord<'a>>,
}

#[derive(Deserialize)]
struct ItemRecord<'a> {
    #[serde(borrow)]
    entry: EntryRecord<'a>,
}

#[derive(Deserialize)]
struct StepRecord {
    #[serde(default)]
    component: Option<Digest>,
}

/// What is read of a manifest.
#[derive(Deserialize)]
struct ManifestRecord {
    #[serde(default)]
    component: Option<Digest>,
}

impl References {
    /// Takes what a manifest refers to.
    pub(super) fn take_manifest(&mut self, bytes: &[u8], key: &Path) -> Result<(), Error> {
        let ManifestRecord { component } =
            serde_json::from_slice(bytes).map_err(|source| Error::corrupt(key, source))?;
        self.possible.extend(component);
        Ok(())
    }

    /// Takes what a snapshot refers to, and returns the digest of the one before it.
    pub(super) fn take_snapshot(
        &mut self,
        bytes: &[u8],
        session: SessionId,
        version: u64,
    ) -> Result<Option<Digest>, Error> {
        let key = layout::snapshot(&session, version);
        let corrupt = |source: serde_json::Error| Error::corrupt(&key, source);
        let record = parse_readable(bytes, &key, |record: &SnapshotRecord<'_>| record.format)?;
        if (record.session, record.version) != (session, version) {
            let found = format!("it is version {} of session {}", record.version, record.session);
            return Err(Error::corrupt(&key, found));
        }
        self.take_entries(record.objects);
        self.take_entries(record.last.outbox.into_iter().map(|item| item.entry));
        if version == 0 {
            // What was inherited is in nobody's `objects` but its ancestors'.
            let tail: Vec<EntryRecord<'_>> =
                serde_json::from_str(record.log.tail.get()).map_err(corrupt)?;
            self.take_entries(tail);
        }
        if record.log.levels.get() != self.last_levels {
            let levels: Vec<Vec<Digest>> =
                serde_json::from_str(record.log.levels.get()).map_err(corrupt)?;
            if levels.len() > MAX_LEVELS {
                return Err(Error::corrupt(&key, "its log has too many levels"));
            }
            for (level, hashes) in levels.into_iter().enumerate() {
                self.level(level).extend(hashes);
            }
            record.log.levels.get().clone_into(&mut self.last_levels);
        }
        if let Some(step) = record.step {
            let StepRecord { component } = serde_json::from_str(step.get()).map_err(corrupt)?;
            self.bodies.extend(component);
        }
        for record in [record.step, record.trace].into_iter().flatten() {
            self.possible.extend(digests_in(record.get()));
        }
        Ok(record.parent)
    }

    /// The nodes of the highest level that were not taken yet, and that level.
    pub(super) fn next_level(&mut self) -> Option<(usize, Vec<Digest>)> {
        while let Some(hashes) = self.levels.pop() {
            let new: Vec<Digest> =
                hashes.into_iter().filter(|hash| self.nodes.insert(*hash)).collect();
            if !new.is_empty() {
                return Some((self.levels.len(), new));
            }
        }
        None
    }

    /// Takes what a node refers to.
    pub(super) fn take_node(
        &mut self,
        level: usize,
        hash: &Digest,
        bytes: &Bytes,
    ) -> Result<(), Error> {
        let key = layout::object(hash);
        let mut count = 0;
        for line in lines(bytes) {
            count += 1;
            let corrupt = |source: serde_json::Error| Error::corrupt(&key, source);
            if level == 0 {
                let entry: EntryRecord<'_> = serde_json::from_slice(&line).map_err(corrupt)?;
                self.take_entries([entry]);
            } else {
                let child: Digest = serde_json::from_slice(&line).map_err(corrupt)?;
                self.level(level - 1).insert(child);
            }
        }
        if count == FAN_OUT {
            return Ok(());
        }
        Err(Error::corrupt(&key, format!("a node of {count} lines instead of {FAN_OUT}")))
    }

    /// All other objects, by their hashes, and whether each is needed: the rest are objects if the
    /// bucket has them. To be called last.
    pub(super) fn take_bodies(&mut self) -> Vec<(Digest, bool)> {
        let mut bodies: BTreeMap<Digest, bool> =
            std::mem::take(&mut self.possible).into_iter().map(|hash| (hash, false)).collect();
        bodies.extend(std::mem::take(&mut self.bodies).into_iter().map(|hash| (hash, true)));
        bodies.into_iter().filter(|(hash, _)| !self.nodes.contains(hash)).collect()
    }

    fn level(&mut self, level: usize) -> &mut BTreeSet<Digest> {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, BTreeSet::new);
        }
        &mut self.levels[level]
    }

    fn take_entries<'a>(&mut self, entries: impl IntoIterator<Item = EntryRecord<'a>>) {
        let apart = entries.into_iter().filter(|entry| entry.data.is_none());
        self.bodies.extend(apart.map(|entry| entry.hash));
    }
}

/// The digests that a JSON text has as strings, but for those of logs, which are no objects.
fn digests_in(json: &str) -> impl Iterator<Item = Digest> {
    const BEGIN: &str = "\"sha256:";
    const LEN: usize = BEGIN.len() + 64;
    memmem::find_iter(json.as_bytes(), BEGIN).filter_map(move |at| {
        if json[..at].ends_with("\"log\":") || json.as_bytes().get(at + LEN) != Some(&b'"') {
            return None;
        }
        json.get(at + 1..at + LEN)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_digests_but_for_a_log() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let json = format!(r#"{{"x":["{a}","sha256:12"],"log":"{b}","y":"{b}x"}}"#);
        assert_eq!(digests_in(&json).collect::<Vec<_>>(), [a]);
    }
}

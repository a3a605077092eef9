//! The log as a persistent vector of fan-out 32.
//!
//! Its shape is a function of its length alone: `length % 32` entries in the tail, and on level `i`
//! the digit `i + 1` of the length, written to base 32, in references to nodes. A leaf is an object
//! of 32 entries, any other node one of 32 references, a line each. Hence two logs of the same
//! entries have the same bytes, appending writes one node every 32nd entry, and versions and forks
//! share all but the tail.

use std::io::Write as _;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::digest::Digest;
use crate::entry::Entry;
use crate::error::Error;
use crate::snapshot::lines_as_array;

/// Entries of a leaf, references of any other node.
pub const FAN_OUT: usize = 32;

/// More levels than a log of 2^64 entries needs.
const MAX_LEVELS: usize = 13;

/// An immutable sequence of entries, the older ones in nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector {
    count: u64,
    levels: Vec<Vec<Digest>>,
    tail: Vec<Entry>,
}

/// Part of a log, in order: either a leaf's node with the entries before it, or entries themselves.
pub(crate) struct NodeRef {
    /// The node's object.
    pub hash: Digest,
    /// 0 for a leaf.
    pub level: usize,
    /// The position of its first entry.
    pub start: u64,
}

impl NodeRef {
    /// How many entries a node of this level holds.
    pub(crate) fn span(level: usize) -> u64 {
        32_u64.saturating_pow(u32::try_from(level + 1).unwrap_or(u32::MAX))
    }

    /// The positions that the node holds.
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + Self::span(self.level)
    }
}

/// A node that was completed by appending, to be stored before the log that names it.
pub(crate) struct NewNode {
    pub hash: Digest,
    pub bytes: Bytes,
}

#[derive(Deserialize)]
struct Record<'a> {
    count: u64,
    levels: Vec<Vec<Digest>>,
    #[serde(borrow)]
    tail: Vec<&'a RawValue>,
}

impl Vector {
    /// A log from its nodes by level and its tail, which have the shape of their number.
    pub(crate) fn from_parts(count: u64, levels: Vec<Vec<Digest>>, tail: Vec<Entry>) -> Self {
        Self { count, levels, tail }
    }

    /// How many entries the log has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The last entries, fewer than [`FAN_OUT`].
    #[must_use]
    pub fn tail(&self) -> &[Entry] {
        &self.tail
    }

    /// The position of the tail's first entry.
    #[must_use]
    pub fn tail_start(&self) -> u64 {
        self.count - self.tail.len() as u64
    }

    /// The digest that names the sequence of entries: of the bytes of [`Vector::to_json`].
    #[must_use]
    pub fn root(&self) -> Digest {
        Digest::of(&self.to_json())
    }

    /// The persisted form: `{"count":…,"levels":[[…],…],"tail":[…]}`, without white space.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let references: usize = self.levels.iter().map(Vec::len).sum();
        let tail = lines_as_array(&self.tail);
        let mut out = Vec::with_capacity(128 + 80 * references + tail.len());
        // Writing to memory does not fail.
        let _ = write!(out, "{{\"count\":{},\"levels\":[", self.count);
        for (index, level) in self.levels.iter().enumerate() {
            out.extend_from_slice(if index > 0 { b",[" } else { b"[" });
            for (index, hash) in level.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let _ = write!(out, "{comma}\"{hash}\"");
            }
            out.push(b']');
        }
        out.extend_from_slice(b"],\"tail\":");
        out.extend_from_slice(&tail);
        out.push(b'}');
        out
    }

    /// Reads the persisted form, which is part of `bytes`.
    pub(crate) fn parse(bytes: &Bytes, json: &RawValue) -> Result<Self, Error> {
        let invalid = |reason: String| Error::InvalidEntry { reason };
        let record: Record<'_> =
            serde_json::from_str(json.get()).map_err(|source| invalid(source.to_string()))?;
        let tail: Vec<Entry> = record
            .tail
            .iter()
            .map(|raw| Entry::parse(bytes.slice_ref(raw.get().as_bytes())))
            .collect::<Result<_, _>>()?;
        let vector = Self { count: record.count, levels: record.levels, tail };
        if vector.has_its_shape() {
            Ok(vector)
        } else {
            Err(invalid(format!("its log does not have the shape of {} entries", vector.count)))
        }
    }

    fn has_its_shape(&self) -> bool {
        let digit = |level: usize| (self.count >> (5 * level).min(63)) % 32;
        let canonical = self.levels.last().is_none_or(|level| !level.is_empty());
        canonical
            && self.levels.len() < MAX_LEVELS
            && self.tail.len() as u64 == digit(0)
            && self.levels.iter().enumerate().all(|(i, level)| level.len() as u64 == digit(i + 1))
            && self.count >> (5 * (self.levels.len() + 1)).min(63) == 0
    }

    /// Appends entries; `nodes` takes what has to be stored before the new log.
    pub(crate) fn append(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
        nodes: &mut Vec<NewNode>,
    ) {
        for entry in entries {
            self.tail.push(entry);
            self.count += 1;
            if self.tail.len() == FAN_OUT {
                self.carry(nodes);
            }
        }
    }

    fn carry(&mut self, nodes: &mut Vec<NewNode>) {
        let lines = self.tail.drain(..).map(|entry| entry.line().clone());
        let mut hash = new_node(lines, nodes);
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(hash);
            if self.levels[level].len() < FAN_OUT {
                return;
            }
            let references = self.levels[level].drain(..);
            hash = new_node(references.map(|hash| format!("\"{hash}\"").into()), nodes);
        }
    }

    /// The nodes that hold the entries of `range`, in order; the rest is in the tail.
    pub(crate) fn nodes(&self, range: &Range<u64>) -> Vec<NodeRef> {
        let mut start = 0;
        let mut found = Vec::new();
        for (level, hashes) in self.levels.iter().enumerate().rev() {
            for hash in hashes {
                let node = NodeRef { hash: *hash, level, start };
                start = node.range().end;
                if overlap(&node.range(), range) {
                    found.push(node);
                }
            }
        }
        found
    }
}

/// Whether two ranges share a position.
pub(crate) fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn new_node(lines: impl Iterator<Item = Bytes>, nodes: &mut Vec<NewNode>) -> Digest {
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend_from_slice(&line);
        bytes.push(b'\n');
    }
    let hash = Digest::of(&bytes);
    nodes.push(NewNode { hash, bytes: bytes.into() });
    hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::{Attributes, Draft};

    fn entry(i: u64) -> Entry {
        Draft::push(i.to_string(), Attributes::default()).build().unwrap()
    }

    fn vector(count: u64) -> (Vector, Vec<NewNode>) {
        let (mut vector, mut nodes) = (Vector::default(), Vec::new());
        vector.append((0..count).map(entry), &mut nodes);
        (vector, nodes)
    }

    fn reread(vector: &Vector) -> Vector {
        let bytes = Bytes::from(vector.to_json());
        let raw: &RawValue = serde_json::from_slice(&bytes).unwrap();
        Vector::parse(&bytes, raw).unwrap()
    }

    #[test]
    fn golden_root() {
        assert_eq!(Vector::default().to_json(), br#"{"count":0,"levels":[],"tail":[]}"#);
        let (vector, nodes) = vector(33);
        assert_eq!(nodes.len(), 1);
        let leaf: Vec<u8> =
            (0..32).flat_map(|i| [entry(i).line().as_ref(), b"\n"].concat()).collect();
        assert_eq!(nodes[0].bytes, leaf);
        let expected = format!(
            "{{\"count\":33,\"levels\":[[\"{}\"]],\"tail\":[{}]}}",
            Digest::of(&leaf),
            String::from_utf8_lossy(entry(32).line())
        );
        assert_eq!(String::from_utf8(vector.to_json()).unwrap(), expected);
    }

    #[test]
    fn shape_at_the_carries() {
        for (count, levels) in
            [(31, vec![]), (32, vec![1]), (1023, vec![31]), (1024, vec![0, 1]), (1056, vec![1, 1])]
        {
            let (vector, _) = vector(count);
            assert_eq!(vector.levels.iter().map(Vec::len).collect::<Vec<_>>(), levels, "{count}");
            assert_eq!(reread(&vector), vector);
        }
    }

    #[test]
    fn refuses_another_shape() {
        for json in [
            r#"{"count":1,"levels":[],"tail":[]}"#,
            r#"{"count":0,"levels":[[]],"tail":[]}"#,
            r#"{"count":18446744073709551615,"levels":[],"tail":[]}"#,
        ] {
            let bytes = Bytes::from(json);
            let raw: &RawValue = serde_json::from_slice(&bytes).unwrap();
            assert!(Vector::parse(&bytes, raw).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_batching_gives_the_same_root(sizes in prop::collection::vec(0_u64..70, 0..40)) {
            let (mut batched, mut nodes, mut next) = (Vector::default(), Vec::new(), 0);
            for size in sizes {
                batched.append((next..next + size).map(entry), &mut nodes);
                next += size;
            }
            let (whole, _) = vector(next);
            prop_assert_eq!(batched.root(), whole.root());
            prop_assert_eq!(nodes.len() as u64, (1..=2).map(|i| next / 32_u64.pow(i)).sum::<u64>());
        }
    }
}

//! A bundle's first member: which sessions it holds, up to which version, and the digests that all
//! the rest is checked by.

use std::collections::{BTreeMap, BTreeSet};

use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::bucket::Bucket;
use crate::bundle::error::Error;
use crate::digest::Digest;
use crate::layout;
use crate::manifest::Parent;
use crate::session_id::SessionId;
use crate::snapshot::{self, Snapshot, parse_readable};

/// Its name.
pub(super) const KEY: &str = "bundle.json";
/// The newest format that this program can read, and the one that it writes.
const FORMAT: u32 = 1;
/// Bytes of the last field, which says the digest of those before it, and of the line's end.
const DIGEST_FIELD_LEN: usize = ",\"digest\":\"sha256:\"}\n".len() + 64;

/// What a bundle holds. The field order is the persisted order.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contents {
    format: Format,
    /// The sessions, by their ids.
    pub sessions: Vec<Held>,
    /// Sessions that others were forked from and that the bucket had no more: the steps that were
    /// inherited from them cannot be replayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<SessionId>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Format {
    read: u32,
}

#[derive(Deserialize)]
struct Probe {
    format: Format,
}

/// What is read of a manifest.
#[derive(Deserialize)]
pub(super) struct ManifestRecord {
    format: snapshot::Format,
    pub(super) session: SessionId,
    #[serde(default)]
    pub(super) parent: Option<Parent>,
}

impl ManifestRecord {
    pub(super) fn parse(bytes: &[u8], key: &Path) -> Result<Self, crate::Error> {
        parse_readable(bytes, key, |manifest: &Self| manifest.format)
    }
}

/// A session in a bundle. The field order is the persisted order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// The session.
    pub session: SessionId,
    /// Its newest version in the bundle; all before it are there, too.
    pub version: u64,
    /// The digest of that version's bytes: it leads to those of all before.
    pub snapshot: Digest,
    /// The digest of the manifest's bytes.
    pub manifest: Digest,
    /// What it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Whether it is there only because another one was forked from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ancestor: bool,
}

impl Contents {
    /// What a bundle of these sessions, up to these versions, has to hold.
    pub(super) async fn of(bucket: &Bucket, tips: &[Snapshot]) -> Result<Self, Error> {
        let (mut sessions, mut absent) = (BTreeMap::new(), BTreeSet::new());
        for tip in tips {
            let mut next = Some((tip.session, tip.version, tip.digest(), false));
            while let Some((session, version, snapshot, ancestor)) = next.take() {
                let parent = match hold(bucket, session).await? {
                    Some(held) => {
                        let parent = held.parent.clone();
                        let held = Held { version, snapshot, ancestor, ..held };
                        merge(&mut sessions, held);
                        parent
                    }
                    None => {
                        absent.insert(session);
                        None
                    }
                };
                if let Some(parent) = parent {
                    if has_snapshot(bucket, &parent).await? {
                        next = Some((parent.session, parent.version, parent.snapshot, true));
                    } else {
                        absent.insert(parent.session);
                    }
                }
            }
        }
        let absent = absent.into_iter().filter(|id| !sessions.contains_key(id)).collect();
        let sessions = sessions.into_values().collect();
        Ok(Self { format: Format { read: FORMAT }, sessions, absent })
    }

    /// The sessions that were asked for.
    pub fn asked(&self) -> impl Iterator<Item = &Held> {
        self.sessions.iter().filter(|held| !held.ancestor)
    }

    /// The forks of a session that the bundle holds, by their ids.
    pub(super) fn children(&self, session: SessionId) -> Vec<SessionId> {
        let is_child = |held: &&Held| held.parent.as_ref().is_some_and(|of| of.session == session);
        self.sessions.iter().filter(is_child).map(|held| held.session).collect()
    }

    /// Digests of snapshots that were forked.
    pub(super) fn forked(&self) -> BTreeMap<(SessionId, u64), Digest> {
        let parents = self.sessions.iter().filter_map(|held| held.parent.as_ref());
        parents.map(|parent| ((parent.session, parent.version), parent.snapshot)).collect()
    }

    pub(super) fn to_line(&self) -> Result<Vec<u8>, Error> {
        let json = serde_json::to_vec(self).map_err(|source| crate::Error::Encode { source })?;
        let mut line = json;
        line.pop();
        let digest = digest_field(&line);
        line.extend_from_slice(digest.as_bytes());
        Ok(line)
    }

    pub(super) fn parse(line: &[u8]) -> Result<Self, Error> {
        let damaged = |reason: String| Error::damaged(KEY, reason);
        let split = line.len().checked_sub(DIGEST_FIELD_LEN);
        let (covered, field) = split
            .and_then(|at| line.split_at_checked(at))
            .ok_or_else(|| damaged("it is cut short".to_owned()))?;
        if field != digest_field(covered).as_bytes() {
            return Err(damaged("its bytes do not match its digest".to_owned()));
        }
        let probe: Probe =
            serde_json::from_slice(line).map_err(|source| damaged(source.to_string()))?;
        if probe.format.read > FORMAT {
            return Err(Error::NewerFormat { found: probe.format.read, supported: FORMAT });
        }
        let contents: Self =
            serde_json::from_slice(line).map_err(|source| damaged(source.to_string()))?;
        if !contents.sessions.is_sorted_by(|a, b| a.session < b.session) {
            return Err(damaged("its sessions are not in order".to_owned()));
        }
        Ok(contents)
    }
}

fn digest_field(covered: &[u8]) -> String {
    format!(",\"digest\":\"{}\"}}\n", Digest::of(covered))
}

/// A session without the version that it is needed up to; `None` if the bucket does not have it.
async fn hold(bucket: &Bucket, session: SessionId) -> Result<Option<Held>, Error> {
    let key = layout::manifest(&session);
    let Some(bytes) = bucket.get_file(&key).await? else { return Ok(None) };
    let manifest = Digest::of(&bytes);
    let parent = bucket.manifest(&session).await?.parent;
    Ok(Some(Held { session, version: 0, snapshot: manifest, manifest, parent, ancestor: false }))
}

fn merge(sessions: &mut BTreeMap<SessionId, Held>, held: Held) {
    let known = sessions.entry(held.session).or_insert_with(|| held.clone());
    known.ancestor &= held.ancestor;
    if held.version > known.version {
        (known.version, known.snapshot) = (held.version, held.snapshot);
    }
}

/// Whether the snapshot that was forked is still there; if it is another one, that is damage.
async fn has_snapshot(bucket: &Bucket, parent: &Parent) -> Result<bool, Error> {
    match bucket.snapshot(&parent.session, parent.version).await {
        Ok(Some(found)) if found.digest() == parent.snapshot => Ok(true),
        Ok(Some(_)) => {
            let key = layout::snapshot(&parent.session, parent.version);
            Err(crate::Error::corrupt(key, "it is not the snapshot that was forked").into())
        }
        Ok(None) | Err(crate::Error::SessionRemoved { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

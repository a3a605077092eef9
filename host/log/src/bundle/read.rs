//! Reading a bundle from its beginning to its end, checking each member before it is handed on.
//!
//! Which member comes next follows from those before it, so a member is never looked up by the name
//! that it gives itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::vec;

use bytes::Bytes;
use object_store::path::Path;

use crate::bundle::contents::{self, Contents, ManifestRecord};
use crate::bundle::error::Error;
use crate::bundle::input::{self, End, Input};
use crate::bundle::references::References;
use crate::bundle::seal::is_bundle;
use crate::bundle::tar::{self, Found};
use crate::bundle::{Limits, MAX_DOCUMENT_LEN, MAX_WHOLE_LEN};
use crate::digest::{Digest, Hasher};
use crate::layout;
use crate::session_id::SessionId;

/// A member that was checked, or will be once its last piece was read.
pub(super) struct Member {
    /// Its key in a bucket.
    pub key: Path,
    /// What it is.
    pub kind: MemberKind,
    /// Its length in bytes.
    pub size: u64,
    /// Its bytes; `None` if they are to be read with [`Reader::piece`].
    pub bytes: Option<Bytes>,
}

/// What a member is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberKind {
    Child,
    Manifest(SessionId),
    Snapshot(SessionId, u64, Digest),
    Object,
}

/// Reads members one after the other. Blocks.
pub(super) struct Reader {
    input: Input,
    limits: Limits,
    unpacked: u64,
    /// What the bundle says that it holds.
    pub(super) contents: Contents,
    forked: BTreeMap<(SessionId, u64), Digest>,
    references: References,
    stage: Stage,
    piecewise: Option<Piecewise>,
}

/// What comes next.
enum Stage {
    Children { index: usize, left: vec::IntoIter<SessionId> },
    Manifest { index: usize },
    Snapshot { index: usize, version: u64, digest: Digest },
    Nodes { level: usize, left: vec::IntoIter<Digest> },
    Bodies { left: vec::IntoIter<(Digest, bool)> },
    End,
}

/// A body that is being read.
struct Piecewise {
    key: Path,
    hash: Digest,
    hasher: Hasher,
    size: u64,
    left: u64,
}

impl Reader {
    /// Begins to read, and reads what the bundle holds.
    pub(super) fn new(file: &Arc<File>, limits: Limits) -> Result<Self, Error> {
        let unread = |source| Error::Io { action: "read the bundle", source };
        if !is_bundle(file).map_err(unread)? {
            return Err(Error::NotBundle);
        }
        let mut reader = Self {
            input: Input::new(file.clone()).map_err(unread)?,
            limits,
            unpacked: 0,
            contents: Contents::default(),
            forked: BTreeMap::new(),
            references: References::default(),
            stage: Stage::End,
            piecewise: None,
        };
        let line = reader.document(contents::KEY)?;
        reader.contents = Contents::parse(&line)?;
        reader.forked = reader.contents.forked();
        reader.stage = reader.session(0);
        Ok(reader)
    }

    /// The next member; `None` once all of the bundle was found to be as it was written.
    pub(super) fn next_member(&mut self) -> Result<Option<Member>, Error> {
        debug_assert!(self.piecewise.is_none(), "a body is read to its end first");
        loop {
            match &mut self.stage {
                Stage::Children { index, left } => match left.next() {
                    Some(child) => {
                        let parent = self.contents.sessions[*index].session;
                        let key = layout::children(&parent).join(child.to_string());
                        let bytes = self.document(key.as_ref())?;
                        if !bytes.is_empty() {
                            return Err(Error::damaged(key, "it is not empty"));
                        }
                        return Ok(Some(whole(key, MemberKind::Child, bytes)));
                    }
                    None => self.stage = Stage::Manifest { index: *index },
                },
                Stage::Manifest { index } => {
                    let index = *index;
                    return self.manifest(index).map(Some);
                }
                Stage::Snapshot { index, version, digest } => {
                    let (index, version, digest) = (*index, *version, *digest);
                    return self.snapshot(index, version, digest).map(Some);
                }
                Stage::Nodes { level, left } => match left.next() {
                    Some(hash) => {
                        let (level, key) = (*level, layout::object(&hash));
                        let bytes = self.checked(&key, hash)?;
                        let taken = self.references.take_node(level, &hash, &bytes);
                        taken.map_err(Error::of_member)?;
                        return Ok(Some(whole(key, MemberKind::Object, bytes)));
                    }
                    None => self.stage = self.objects(),
                },
                Stage::Bodies { .. } => match self.body()? {
                    Some(member) => return Ok(Some(member)),
                    None => self.stage = Stage::End,
                },
                Stage::End => return Ok(None),
            }
        }
    }

    /// The next piece of a member whose bytes were not handed on; `None` once they were found to
    /// be what its key says.
    pub(super) fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(mut body) = self.piecewise.take() else { return Ok(None) };
        if body.left == 0 {
            self.pad(body.key.as_ref(), body.size)?;
            if body.hasher.finish() == body.hash {
                return Ok(None);
            }
            return Err(mismatch(&body.key));
        }
        let len = body.left.min(MAX_WHOLE_LEN);
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
        let mut left = len;
        while left > 0 {
            // Hashed as it comes, while more is unpacked.
            let (start, now) = (bytes.len(), left.min(input::PIECE as u64));
            self.read(body.key.as_ref(), now, &mut bytes)?;
            body.hasher.update(&bytes[start..]);
            left -= now;
        }
        body.left -= len;
        self.piecewise = Some(body);
        Ok(Some(bytes.into()))
    }

    fn session(&mut self, index: usize) -> Stage {
        match self.contents.sessions.get(index) {
            Some(held) => {
                let left = self.contents.children(held.session).into_iter();
                Stage::Children { index, left }
            }
            None => self.objects(),
        }
    }

    fn objects(&mut self) -> Stage {
        match self.references.next_level() {
            Some((level, hashes)) => Stage::Nodes { level, left: hashes.into_iter() },
            None => Stage::Bodies { left: self.references.take_bodies().into_iter() },
        }
    }

    fn manifest(&mut self, index: usize) -> Result<Member, Error> {
        let held = self.contents.sessions[index].clone();
        let key = layout::manifest(&held.session);
        let bytes = self.checked(&key, held.manifest)?;
        let manifest = ManifestRecord::parse(&bytes, &key).map_err(Error::of_member)?;
        if manifest.session != held.session || manifest.parent != held.parent {
            return Err(Error::damaged(key, "it is not of this session, or of another parent"));
        }
        self.references.take_manifest(&bytes, &key).map_err(Error::of_member)?;
        let (version, digest) = (held.version, held.snapshot);
        self.stage = Stage::Snapshot { index, version, digest };
        Ok(whole(key, MemberKind::Manifest(held.session), bytes))
    }

    fn snapshot(&mut self, index: usize, version: u64, digest: Digest) -> Result<Member, Error> {
        let session = self.contents.sessions[index].session;
        let key = layout::snapshot(&session, version);
        let bytes = self.checked(&key, digest)?;
        if self.forked.get(&(session, version)).is_some_and(|forked| *forked != digest) {
            return Err(Error::damaged(key, "it is not the one that was forked"));
        }
        let before = self.references.take_snapshot(&bytes, session, version);
        let before = before.map_err(Error::of_member)?;
        self.stage = match (version.checked_sub(1), before) {
            (None, _) => self.session(index + 1),
            (Some(version), Some(digest)) => Stage::Snapshot { index, version, digest },
            (Some(_), None) => return Err(Error::damaged(key, "it does not say what it follows")),
        };
        Ok(whole(key, MemberKind::Snapshot(session, version, digest), bytes))
    }

    /// The next body; `None` at the end of the bundle.
    fn body(&mut self) -> Result<Option<Member>, Error> {
        let Stage::Bodies { left } = &mut self.stage else { return Ok(None) };
        let after = left.as_slice().first().map_or_else(
            || "the end of the archive".to_owned(),
            |(hash, _)| layout::object(hash).to_string(),
        );
        let found = tar::read_header(&mut self.input).map_err(|source| broken(&after, source))?;
        let Some(found) = found else {
            let missing = left.find(|(_, needed)| *needed);
            return match missing {
                Some((hash, _)) => Err(Error::damaged(layout::object(&hash), "it is missing")),
                None => self.end().map(|()| None),
            };
        };
        let name = found.name();
        for (hash, needed) in left.by_ref() {
            let key = layout::object(&hash);
            if key.as_ref() == name {
                return self.begin_body(key, hash, &found).map(Some);
            } else if needed {
                return Err(misplaced(&name, key.as_ref()));
            }
        }
        Err(Error::damaged(shown(&name), "nothing that the bundle holds needs it"))
    }

    fn begin_body(&mut self, key: Path, hash: Digest, found: &Found) -> Result<Member, Error> {
        let size = self.admit(key.as_ref(), found)?;
        if size > MAX_WHOLE_LEN {
            let hasher = Hasher::default();
            self.piecewise = Some(Piecewise { key: key.clone(), hash, hasher, size, left: size });
            return Ok(Member { key, kind: MemberKind::Object, size, bytes: None });
        }
        let bytes = self.bytes(key.as_ref(), size)?;
        self.pad(key.as_ref(), size)?;
        if Digest::of(&bytes) == hash {
            return Ok(whole(key, MemberKind::Object, bytes));
        }
        Err(mismatch(&key))
    }

    /// A document with this digest.
    fn checked(&mut self, key: &Path, digest: Digest) -> Result<Bytes, Error> {
        let bytes = self.document(key.as_ref())?;
        if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(mismatch(key)) }
    }

    /// The member that has to come next, whole.
    fn document(&mut self, key: &str) -> Result<Bytes, Error> {
        let found = tar::read_header(&mut self.input).map_err(|source| broken(key, source))?;
        let found = found.ok_or_else(|| Error::damaged(key, "it is missing"))?;
        let name = found.name();
        if name != key {
            return Err(misplaced(&name, key));
        }
        let size = self.admit(key, &found)?;
        if size > MAX_DOCUMENT_LEN {
            return Err(Error::TooLarge { member: key.to_owned(), limit: MAX_DOCUMENT_LEN });
        }
        let bytes = self.bytes(key, size)?;
        self.pad(key, size)?;
        Ok(bytes)
    }

    /// The size of a member, if its header is as it must be and the limit allows for it.
    fn admit(&mut self, key: &str, found: &Found) -> Result<u64, Error> {
        let size = found.size_of(key).map_err(|reason| Error::damaged(key, reason))?;
        let limit = self.limits.unpacked_bytes;
        self.unpacked = self.unpacked.saturating_add(size + 2 * tar::BLOCK as u64);
        if self.unpacked > limit {
            return Err(Error::TooLarge { member: key.to_owned(), limit });
        }
        Ok(size)
    }

    /// So many bytes. Most of the memory is taken as they come: the size may be a lie.
    fn bytes(&mut self, key: &str, len: u64) -> Result<Bytes, Error> {
        let capacity = usize::try_from(len.min(MAX_WHOLE_LEN)).unwrap_or_default();
        let mut bytes = Vec::with_capacity(capacity);
        self.read(key, len, &mut bytes)?;
        Ok(bytes.into())
    }

    /// Appends so many bytes.
    fn read(&mut self, key: &str, len: u64, to: &mut Vec<u8>) -> Result<(), Error> {
        let read = self.input.by_ref().take(len).read_to_end(to);
        match read.map_err(|source| broken(key, source))? as u64 {
            read if read < len => Err(broken(key, io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(()),
        }
    }

    fn pad(&mut self, key: &str, size: u64) -> Result<(), Error> {
        tar::read_padding(&mut self.input, size).map_err(|source| broken(key, source))
    }

    /// Nothing may follow the archive but the seal, and that must be right.
    fn end(&mut self) -> Result<(), Error> {
        const WHERE: &str = "the end of the archive";
        match self.input.end().map_err(|source| broken(WHERE, source))? {
            End::Intact => Ok(()),
            End::Followed => Err(Error::damaged(WHERE, "something follows it")),
            End::Changed => {
                let reason = "the file's bytes do not match it, though all members are whole";
                Err(Error::damaged("the seal", reason))
            }
        }
    }
}

fn whole(key: Path, kind: MemberKind, bytes: Bytes) -> Member {
    Member { key, kind, size: bytes.len() as u64, bytes: Some(bytes) }
}

fn mismatch(key: &Path) -> Error {
    Error::damaged(key, "its bytes do not match its digest")
}

fn misplaced(name: &str, key: &str) -> Error {
    Error::damaged(shown(name), format!("it is in the place of `{key}`"))
}

/// A name that somebody else gave, for a message.
fn shown(name: &str) -> String {
    if name.is_empty() {
        return "a member without a name".to_owned();
    }
    name.chars().take(260).collect()
}

/// What the decompressor reports is damage; what the operating system does is not.
fn broken(member: &str, source: io::Error) -> Error {
    if source.raw_os_error().is_some() {
        return Error::Io { action: "read the bundle", source };
    }
    match source.kind() {
        io::ErrorKind::UnexpectedEof => Error::damaged(member, "the bundle is cut short in it"),
        _ => Error::damaged(member, format!("it cannot be unpacked: {source}")),
    }
}

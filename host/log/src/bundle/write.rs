//! Writing a bundle, in one pass over what the sessions need.

use std::io::{self, Write};
use std::pin::pin;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;

use crate::bucket::Bucket;
use crate::bundle::contents::{self, Contents, Held};
use crate::bundle::error::Error;
use crate::bundle::references::References;
use crate::bundle::sink::Sink;
use crate::digest::Digest;
use crate::layout;
use crate::snapshot::Snapshot;

/// How many documents are read at a time.
const PARALLEL: usize = 16;
/// How many bodies are opened at a time: they may be large.
const PARALLEL_BODIES: usize = 4;

/// A bundle that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// What it holds.
    pub contents: Contents,
    /// How many files it has.
    pub members: u64,
    /// Its length unpacked, in bytes.
    pub unpacked_bytes: u64,
}

/// Writes sessions, each up to a version, with all that they need. What is read is checked on the
/// way. Blocks while `out` does.
///
/// # Errors
/// Whatever is missing or damaged in the bucket; [`Error::Io`] if `out` does not take it.
pub async fn write<W: Write + Send + 'static>(
    bucket: &Bucket,
    tips: &[Snapshot],
    out: W,
) -> Result<(W, Written), Error> {
    let contents = Contents::of(bucket, tips).await?;
    let sink = Sink::new(out);
    let mut writer = Writer { bucket, sink, references: References::default() };
    writer.member(contents::KEY, &contents.to_line()?)?;
    let written = writer.write(&contents).await;
    let Writer { sink, .. } = writer;
    let (members, unpacked_bytes) = (sink.members, sink.bytes);
    match written {
        // The thread's error is why a member was not taken.
        Ok(()) | Err(Error::Io { .. }) => {
            let out = sink.finish().map_err(unwritten)?;
            written.map(|()| (out, Written { contents, members, unpacked_bytes }))
        }
        Err(error) => Err(error),
    }
}

struct Writer<'a, W> {
    bucket: &'a Bucket,
    sink: Sink<W>,
    references: References,
}

impl<W: Write + Send + 'static> Writer<'_, W> {
    async fn write(&mut self, contents: &Contents) -> Result<(), Error> {
        let forked = contents.forked();
        for held in &contents.sessions {
            for child in contents.children(held.session) {
                let key = layout::children(&held.session).join(child.to_string());
                self.member(key.as_ref(), b"")?;
            }
            let key = layout::manifest(&held.session);
            let bytes = self.bucket.get_file(&key).await?.unwrap_or_default();
            self.checked(&key, held.manifest, &bytes)?;
            self.references.take_manifest(&bytes, &key)?;
            self.snapshots(held, |version| forked.get(&(held.session, version)).copied()).await?;
        }
        while let Some((level, hashes)) = self.references.next_level() {
            self.nodes(level, hashes).await?;
        }
        self.bodies().await
    }

    /// All versions of a session from the newest back, each checked by the one after it.
    async fn snapshots(
        &mut self,
        held: &Held,
        forked: impl Fn(u64) -> Option<Digest>,
    ) -> Result<(), Error> {
        let bucket = self.bucket;
        let snapshots = futures::stream::iter((0..=held.version).rev())
            .map(|version| async move {
                let key = layout::snapshot(&held.session, version);
                let bytes = bucket.get_file(&key).await?;
                Ok::<_, Error>((version, key, bytes.unwrap_or_default()))
            })
            .buffered(PARALLEL);
        let mut snapshots = pin!(snapshots);
        let mut expected = Some(held.snapshot);
        while let Some((version, key, bytes)) = snapshots.try_next().await? {
            let Some(digest) = expected else {
                let next = layout::snapshot(&held.session, version + 1);
                return Err(crate::Error::corrupt(next, "it does not say what it follows").into());
            };
            if forked(version).is_some_and(|forked| forked != digest) {
                return Err(crate::Error::corrupt(&key, "it is not the one that was forked").into());
            }
            self.checked(&key, digest, &bytes)?;
            expected = self.references.take_snapshot(&bytes, held.session, version)?;
        }
        Ok(())
    }

    async fn nodes(&mut self, level: usize, hashes: Vec<Digest>) -> Result<(), Error> {
        let bucket = self.bucket;
        let nodes = futures::stream::iter(hashes)
            .map(|hash| async move { Ok::<_, Error>((hash, bucket.node_bytes(&hash).await?)) })
            .buffered(PARALLEL);
        let mut nodes = pin!(nodes);
        while let Some((hash, bytes)) = nodes.try_next().await? {
            self.references.take_node(level, &hash, &bytes)?;
            self.member(layout::object(&hash).as_ref(), &bytes)?;
        }
        Ok(())
    }

    async fn bodies(&mut self) -> Result<(), Error> {
        let bucket = self.bucket;
        let bodies = futures::stream::iter(self.references.take_bodies())
            .map(|(hash, needed)| async move {
                match bucket.read_object(&hash).await {
                    Ok(body) => Ok(Some((hash, body))),
                    Err(crate::Error::ObjectNotFound { .. }) if !needed => Ok(None),
                    Err(crate::Error::ObjectNotFound { hash }) => {
                        let key = layout::object(&hash);
                        Err(crate::Error::corrupt(key, "a session needs it, and it is missing"))
                    }
                    Err(error) => Err(error),
                }
            })
            .buffered(PARALLEL_BODIES)
            .try_filter_map(|found| futures::future::ready(Ok(found)));
        let mut bodies = pin!(bodies);
        while let Some((hash, mut body)) = bodies.try_next().await? {
            let key = layout::object(&hash);
            self.sink.begin(key.as_ref(), body.size).map_err(unwritten)?;
            let mut left = body.size;
            while let Some(piece) = body.stream.try_next().await? {
                left = left.checked_sub(piece.len() as u64).ok_or_else(|| resized(&key))?;
                self.sink.add(&piece).map_err(unwritten)?;
            }
            if left > 0 {
                return Err(resized(&key));
            }
            self.sink.end(body.size).map_err(unwritten)?;
        }
        Ok(())
    }

    fn checked(&mut self, key: &Path, digest: Digest, bytes: &Bytes) -> Result<(), Error> {
        if Digest::of(bytes) == digest {
            return self.member(key.as_ref(), bytes);
        }
        let reason =
            if bytes.is_empty() { "it is missing" } else { "its bytes do not match its digest" };
        Err(crate::Error::corrupt(key, reason).into())
    }

    fn member(&mut self, key: &str, bytes: &[u8]) -> Result<(), Error> {
        self.sink.member(key, bytes).map_err(unwritten)
    }
}

fn resized(key: &Path) -> Error {
    crate::Error::corrupt(key, "it is not of the size that the store says").into()
}

fn unwritten(source: io::Error) -> Error {
    Error::Io { action: "write the bundle", source }
}

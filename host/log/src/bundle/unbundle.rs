//! Putting what a bundle holds into a bucket.
//!
//! Two passes over the bundle. The first checks all of it and stores the objects, which are nothing
//! to anybody before a snapshot names them. The second stores the sessions: of a new one the version
//! 0 comes last, with which it comes to be; to one that is there already, versions are added from
//! the oldest on. So a session is there whole or not at all, and what is cut short can be repeated.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    ObjectStore as _, ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload,
};

use crate::bucket::Bucket;
use crate::bundle::Limits;
use crate::bundle::contents::{Contents, Held, ManifestRecord};
use crate::bundle::error::Error;
use crate::bundle::input::PIECE;
use crate::bundle::presence::Presence;
use crate::bundle::read::{Member, MemberKind, Reader};
use crate::digest::Digest;
use crate::put::Put;
use crate::session_id::SessionId;
use crate::snapshot::Snapshot;

/// How many small members are stored at a time.
const PARALLEL: usize = 16;
/// How many wait to be stored, where that is done one after the other.
const WAITING: usize = 16;
/// How many parts of a large body are.
const PARALLEL_PARTS: usize = 4;
/// Bytes of versions that are held to turn their order around.
const MAX_TURNED_BYTES: usize = 64 << 20;

/// A bundle that was put into a bucket.
#[derive(Clone, Debug)]
pub struct Unbundled {
    /// What it holds.
    pub contents: Contents,
    /// The sessions that the bucket did not have before, or not as far.
    pub new: Vec<SessionId>,
}

/// A bucket for what nobody sees yet, which becomes durable together.
pub struct Bulk<'a> {
    /// The bucket, opened so that writes need not be durable one by one.
    pub bucket: Bucket,
    /// Whether neither its store nor its environment needs a runtime, as with local files: it is
    /// quicker without.
    pub local: bool,
    /// Makes durable what was written so far.
    pub sync: &'a dyn Fn() -> io::Result<()>,
}

/// Puts what a bundle holds into a bucket; nothing that makes a session visible goes through `bulk`.
/// Blocks while reading the bundle.
///
/// # Errors
/// [`Error::Conflict`] if the bucket has another session of the same id, or one that went on
/// otherwise; what is wrong with the bundle, then nothing of its sessions is written;
/// [`Error::Log`] or [`Error::Io`] if something cannot be written. All of it may be repeated.
pub async fn unbundle(
    file: File,
    limits: Limits,
    bucket: &Bucket,
    bulk: &Bulk<'_>,
) -> Result<Unbundled, Error> {
    let file = Arc::new(file);
    let mut reader = Reader::new(&file, limits)?;
    let contents = reader.contents.clone();
    let mut there = HashMap::new();
    for held in &contents.sessions {
        there.insert(held.session, bucket.presence(held).await?);
    }
    store_objects(&mut reader, &there, bulk).await?;
    let is_new = |held: &&Held| there[&held.session] != Presence::Whole;
    let new: Vec<SessionId> =
        contents.sessions.iter().filter(is_new).map(|held| held.session).collect();
    if new.is_empty() {
        bulk.sync()?;
        return Ok(Unbundled { contents, new });
    }
    let (first, turned) = (Vec::new(), VecDeque::new());
    let mut sessions = Sessions { bucket, bulk, there, first, turned, turned_bytes: 0 };
    loop {
        let mut reader = Reader::new(&file, limits)?;
        if sessions.store(&mut reader).await? {
            return Ok(Unbundled { contents, new });
        }
    }
}

impl Bulk<'_> {
    fn sync(&self) -> Result<(), Error> {
        (self.sync)().map_err(|source| Error::Io { action: "make the bucket durable", source })
    }
}

/// Stores all objects and checks all else.
async fn store_objects(
    reader: &mut Reader,
    there: &HashMap<SessionId, Presence>,
    bulk: &Bulk<'_>,
) -> Result<(), Error> {
    let mut puts = Puts::new(bulk.local);
    while let Some(member) = reader.next_member()? {
        match (member.kind, member.bytes) {
            (MemberKind::Object, Some(bytes)) => {
                puts.add(put_object(bulk.bucket.clone(), member.key, bytes).boxed()).await?;
            }
            (MemberKind::Object, None) => store_large(reader, &member.key, &bulk.bucket).await?,
            (MemberKind::Snapshot(session, version, digest), _) => match there.get(&session) {
                Some(Presence::Part { version: newest, digest: of_bucket })
                    if *newest == version && *of_bucket != digest =>
                {
                    return Err(Error::Conflict { key: member.key.to_string() });
                }
                _ => {}
            },
            _ => {}
        }
    }
    puts.all().await
}

/// Stores a body in parts, and only if all of it is what its key says.
async fn store_large(reader: &mut Reader, key: &Path, bulk: &Bucket) -> Result<(), Error> {
    let failed = |source| Error::Log(crate::Error::store("write", key, source));
    let options = PutMultipartOptions::default();
    let mut upload = bulk.store.put_multipart_opts(key, options).await.map_err(failed)?;
    let mut parts = FuturesUnordered::new();
    let stored = async {
        while let Some(piece) = reader.piece()? {
            parts.push(upload.put_part(in_pieces(&piece)));
            // A write begins with the first look at it.
            if let Some(Some(ended)) = parts.next().now_or_never() {
                ended.map_err(failed)?;
            }
            if parts.len() >= PARALLEL_PARTS {
                parts.try_next().await.map_err(failed)?;
            }
        }
        while parts.try_next().await.map_err(failed)?.is_some() {}
        Ok::<_, Error>(())
    };
    if let Err(error) = stored.await {
        // What is left of it is in nobody's way; the error below is the one to report.
        let _ = upload.abort().await;
        return Err(error);
    }
    upload.complete().await.map(|_| ()).map_err(failed)
}

/// Writes an object, in place of what may be there: the same, or less after a power cut.
async fn put_object(bucket: Bucket, key: Path, bytes: Bytes) -> Result<(), Error> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    match bucket.store.put_opts(&key, in_pieces(&bytes), options).await {
        Ok(_) => return Ok(()),
        Err(object_store::Error::AlreadyExists { .. }) => {}
        Err(_) => return Ok(bucket.put_idempotent(&key, bytes).await?),
    }
    let found = bucket.store.head(&key).await;
    put(bucket.clone(), key.clone(), bytes.clone()).await?;
    match found {
        // A collection may have announced that it deletes it.
        Ok(found) => Ok(bucket.keep_young(&key, &bytes, &found).await?),
        Err(_) => Ok(()),
    }
}

/// Bytes to be written a piece at a time: one large write to a file is several times slower where it
/// has the system find large stretches of memory for its cache.
fn in_pieces(bytes: &Bytes) -> PutPayload {
    let starts = (0..bytes.len()).step_by(PIECE);
    starts.map(|start| bytes.slice(start..bytes.len().min(start + PIECE))).collect()
}

/// Writes bytes in place of what is there.
async fn put(bucket: Bucket, key: Path, bytes: Bytes) -> Result<(), Error> {
    let put = bucket.store.put(&key, bytes.into()).await;
    put.map(|_| ()).map_err(|source| crate::Error::store("write", &key, source).into())
}

/// The second pass.
struct Sessions<'a> {
    bucket: &'a Bucket,
    bulk: &'a Bulk<'a>,
    there: HashMap<SessionId, Presence>,
    /// First versions, with which new sessions come to be.
    first: Vec<(SessionId, Path, Bytes)>,
    /// Versions to be added to a session that is there, the oldest last.
    turned: VecDeque<(u64, Digest, Path, Bytes)>,
    turned_bytes: usize,
}

impl Sessions<'_> {
    /// Stores sessions; `false` if there is more than could be turned around at once.
    async fn store(&mut self, reader: &mut Reader) -> Result<bool, Error> {
        let (mut puts, mut done) = (Puts::new(self.bulk.local), true);
        while let Some(Member { key, kind, bytes: Some(bytes), .. }) = reader.next_member()? {
            match kind {
                MemberKind::Object => break,
                MemberKind::Child => {
                    let bulk = self.bulk.bucket.clone();
                    let put =
                        async move { bulk.put_idempotent(&key, bytes).await.map_err(Error::from) };
                    puts.add(put.boxed()).await?;
                }
                MemberKind::Manifest(session) => {
                    if self.there[&session] == Presence::Absent {
                        puts.add(create(self.bulk.bucket.clone(), key, bytes, kind).boxed())
                            .await?;
                    }
                }
                MemberKind::Snapshot(session, version, digest) => match self.there[&session] {
                    Presence::Whole => {}
                    Presence::Absent if version == 0 => self.first.push((session, key, bytes)),
                    Presence::Absent => {
                        puts.add(create(self.bulk.bucket.clone(), key, bytes, kind).boxed())
                            .await?;
                    }
                    Presence::Part { version: newest, .. } if version > newest => {
                        done &= self.turn(version, digest, key, bytes);
                        if version == newest + 1 {
                            puts.all().await?;
                            self.bulk.sync()?;
                            self.extend(session).await?;
                        }
                    }
                    Presence::Part { .. } => {}
                },
            }
        }
        puts.all().await?;
        self.bulk.sync()?;
        for (session, key, bytes) in std::mem::take(&mut self.first) {
            let digest = Digest::of(&bytes);
            let kind = MemberKind::Snapshot(session, 0, digest);
            create(self.bucket.clone(), key, bytes, kind).await?;
            self.there.insert(session, Presence::Whole);
        }
        Ok(done)
    }

    /// Holds a version back; `false` if newer ones had to be let go for it.
    fn turn(&mut self, version: u64, digest: Digest, key: Path, bytes: Bytes) -> bool {
        self.turned_bytes += bytes.len();
        self.turned.push_back((version, digest, key, bytes));
        let mut all = true;
        while self.turned.len() > 1 && self.turned_bytes > MAX_TURNED_BYTES {
            let newest = self.turned.pop_front();
            self.turned_bytes -= newest.map_or(0, |(_, _, _, bytes)| bytes.len());
            all = false;
        }
        all
    }

    /// Adds the versions that were held back to a session, the oldest first.
    async fn extend(&mut self, session: SessionId) -> Result<(), Error> {
        while let Some((version, digest, key, bytes)) = self.turned.pop_back() {
            if let Put::Lost = self.bucket.put_if_absent(&key, &bytes).await? {
                return Err(Error::Conflict { key: key.to_string() });
            }
            self.there.insert(session, Presence::Part { version, digest });
        }
        self.turned_bytes = 0;
        Ok(())
    }
}

/// Writes a document of a session that there is not yet. What an earlier attempt left broken is
/// replaced; anything else that is there already must be the same.
async fn create(bucket: Bucket, key: Path, bytes: Bytes, kind: MemberKind) -> Result<(), Error> {
    if let Put::Won = bucket.put_if_absent(&key, &bytes).await? {
        return Ok(());
    }
    let found = bucket.get_file(&key).await?.unwrap_or_default();
    let read = match kind {
        MemberKind::Snapshot(session, version, _) => {
            Snapshot::parse(&found, session, version).map(|_| ())
        }
        _ => ManifestRecord::parse(&found, &key).map(|_| ()),
    };
    match read {
        Err(crate::Error::Corrupt { .. }) => put(bucket, key, bytes).await,
        _ => Err(Error::Conflict { key: key.to_string() }),
    }
}

type Write = BoxFuture<'static, Result<(), Error>>;

/// Writes that are under way.
enum Puts {
    /// Several at a time.
    Tasks(FuturesUnordered<Write>),
    /// One after the other on a thread outside the runtime, where a local store writes at once: it
    /// would otherwise wake another thread for each, and those would wait for the same folder.
    Thread(Option<Writer>),
}

struct Writer {
    writes: SyncSender<Write>,
    thread: JoinHandle<Result<(), Error>>,
}

impl Puts {
    fn new(local: bool) -> Self {
        if local { Self::Thread(None) } else { Self::Tasks(FuturesUnordered::new()) }
    }

    /// Begins a write, once there are few enough of them.
    async fn add(&mut self, write: Write) -> Result<(), Error> {
        match self {
            Self::Tasks(tasks) => {
                while tasks.len() >= PARALLEL {
                    tasks.try_next().await?;
                }
                tasks.push(write);
                // A write begins with the first look at it.
                tasks.next().now_or_never().flatten().transpose().map(|_| ())
            }
            Self::Thread(writer) => {
                let Writer { writes, .. } = match writer {
                    Some(started) => started,
                    None => writer.insert(Writer::start()?),
                };
                // Nobody takes it any more after an error.
                if writes.send(write).is_err() { self.all().await } else { Ok(()) }
            }
        }
    }

    /// Waits for all of them.
    async fn all(&mut self) -> Result<(), Error> {
        match self {
            Self::Tasks(tasks) => {
                while tasks.next().await.transpose()?.is_some() {}
                Ok(())
            }
            Self::Thread(writer) => writer.take().map_or(Ok(()), Writer::finish),
        }
    }
}

impl Drop for Puts {
    /// Nothing is written any more once this is gone.
    fn drop(&mut self) {
        if let Self::Thread(writer) = self {
            // Something else has failed before, and is the error to report.
            let _ = writer.take().map(Writer::finish);
        }
    }
}

impl Writer {
    fn start() -> Result<Self, Error> {
        let (writes, to_make) = sync_channel::<Write>(WAITING);
        let thread = std::thread::Builder::new().name("write".to_owned()).spawn(move || {
            for write in to_make {
                futures::executor::block_on(write)?;
            }
            Ok(())
        });
        let failed = |source| Error::Io { action: "start a thread that writes", source };
        Ok(Self { writes, thread: thread.map_err(failed)? })
    }

    fn finish(self) -> Result<(), Error> {
        drop(self.writes);
        let panicked = |_| Error::Io {
            action: "write to the bucket",
            source: io::Error::other("the thread that writes panicked"),
        };
        self.thread.join().map_err(panicked)?
    }
}

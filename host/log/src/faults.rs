//! A store that fails on purpose, to test what is built on one.
//!
//! [`FaultyStore`] wraps any store and asks a [`Schedule`] for the [`Fate`] of each operation. It
//! must never hold data that anybody wants to keep.

mod schedule;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result,
};

pub use schedule::{Action, Calm, CrashAt, Dice, Fate, Operation, Rates, Schedule, Seeded};

/// A store that fails as its schedule says. Clones share what is under way.
#[derive(Clone, Debug)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    schedule: Arc<dyn Schedule>,
    clock: Option<Clock>,
    shared: Arc<Mutex<Shared>>,
}

/// What the store's own clock shows, in milliseconds since the epoch.
#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A write that took effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// Where.
    pub key: Path,
    /// How many bytes.
    pub len: u64,
    /// Whether nothing was there before.
    pub created: bool,
}

#[derive(Default, Debug)]
struct Shared {
    late: Vec<LatePut>,
    writes: Vec<Write>,
    /// When each key was written, by the store's own clock.
    modified_ms: HashMap<Path, u64>,
}

/// A create that was answered with an error and has yet to reach the store.
#[derive(Debug)]
struct LatePut {
    operations: u32,
    key: Path,
    payload: PutPayload,
}

impl FaultyStore {
    /// A store that hands to `inner` what `schedule` lets through.
    #[must_use]
    pub fn new(inner: Arc<dyn ObjectStore>, schedule: Arc<dyn Schedule>) -> Self {
        Self { inner, schedule, clock: None, shared: Arc::default() }
    }

    /// The same store with a clock of its own, in milliseconds since the epoch, from which times of
    /// modification are taken.
    #[must_use]
    pub fn with_clock(&self, now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { clock: Some(Clock(Arc::new(now_ms))), ..self.clone() }
    }

    /// The same store as another client sees it, one with its own schedule.
    #[must_use]
    pub fn with_schedule(&self, schedule: Arc<dyn Schedule>) -> Self {
        Self { schedule, ..self.clone() }
    }

    /// The writes that took effect through this store and its clones, in order.
    #[must_use]
    pub fn writes(&self) -> Vec<Write> {
        self.shared().writes.clone()
    }

    /// Lets all creates that are still on their way reach the store.
    pub async fn settle(&self) {
        let late = std::mem::take(&mut self.shared().late);
        for put in late {
            self.land(put).await;
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for an operation's fate; puts that are due to land late do so before it.
    async fn before(&self, operation: Operation<'_>) -> Fate {
        let fate = self.schedule.before(operation).await;
        for put in self.due() {
            self.land(put).await;
        }
        if fate == Fate::Hang {
            futures::future::pending::<()>().await;
        }
        fate
    }

    async fn after(&self, operation: Operation<'_>, fate: Fate) {
        if fate == Fate::DoneButHangs {
            futures::future::pending::<()>().await;
        }
        self.schedule.after(operation).await;
    }

    fn due(&self) -> Vec<LatePut> {
        let mut shared = self.shared();
        for put in &mut shared.late {
            put.operations = put.operations.saturating_sub(1);
        }
        let (due, late) = shared.late.drain(..).partition(|put| put.operations == 0);
        shared.late = late;
        due
    }

    /// A late create whose key was taken meanwhile comes to nothing, as in any store.
    async fn land(&self, put: LatePut) {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let _ = self.write(&put.key, put.payload, options).await;
    }

    async fn write(
        &self,
        key: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let len = payload.content_length() as u64;
        let created = matches!(options.mode, PutMode::Create);
        let result = self.inner.put_opts(key, payload, options).await?;
        let now_ms = self.clock.as_ref().map(|clock| clock.0());
        let mut shared = self.shared();
        shared.writes.push(Write { key: key.clone(), len, created });
        if let Some(now_ms) = now_ms {
            shared.modified_ms.insert(key.clone(), now_ms);
        }
        Ok(result)
    }

    /// What the store says of a key, with the time of its own clock.
    fn timed(&self, mut meta: ObjectMeta) -> ObjectMeta {
        if let Some(ms) = self.shared().modified_ms.get(&meta.location) {
            meta.last_modified = (std::time::UNIX_EPOCH + Duration::from_millis(*ms)).into();
        }
        meta
    }

    async fn delete_one(&self, location: Path) -> Result<Path> {
        let operation = Operation { action: Action::Delete, key: &location };
        let fate = self.before(operation).await;
        let result = match fate {
            Fate::Pass | Fate::DoneButHangs => self.inner.delete(&location).await,
            Fate::DoneButFails => self.inner.delete(&location).await.and(Err(fault())),
            _ => Err(fault()),
        };
        self.after(operation, fate).await;
        result.map(|()| location)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let creates = matches!(options.mode, PutMode::Create);
        let action = if creates { Action::Create } else { Action::Replace };
        let operation = Operation { action, key: location };
        let fate = self.before(operation).await;
        let result = match fate {
            Fate::Pass | Fate::Cut | Fate::Hang | Fate::DoneButHangs => {
                self.write(location, payload, options).await
            }
            Fate::Conflict if creates => Err(exists(location)),
            Fate::Late(operations) if creates => {
                self.shared().late.push(LatePut { operations, key: location.clone(), payload });
                Err(fault())
            }
            Fate::DoneButExists if creates => {
                self.write(location, payload, options).await.and(Err(exists(location)))
            }
            Fate::DoneButFails | Fate::DoneButExists => {
                let _ = self.write(location, payload, options).await;
                Err(fault())
            }
            Fate::Fail | Fate::Conflict | Fate::Late(_) => Err(fault()),
        };
        self.after(operation, fate).await;
        result
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let operation = Operation { action: Action::Read, key: location };
        let fate = self.before(operation).await;
        let result = match fate {
            Fate::Pass | Fate::DoneButHangs => self.inner.get_opts(location, options).await,
            Fate::Cut if !options.head => self.inner.get_opts(location, options).await.map(cut),
            _ => Err(fault()),
        };
        let result = result.map(|read| GetResult { meta: self.timed(read.meta.clone()), ..read });
        self.after(operation, fate).await;
        result
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        locations
            .and_then(move |location| {
                let store = store.clone();
                async move { store.delete_one(location).await }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned());
        futures::stream::once(async move {
            let key = prefix.clone().unwrap_or_default();
            let operation = Operation { action: Action::List, key: &key };
            let fate = store.before(operation).await;
            let listed = store.inner.list(prefix.as_ref());
            let listed = listed.map_ok({
                let store = store.clone();
                move |meta| store.timed(meta)
            });
            store.after(operation, fate).await;
            match fate {
                Fate::Pass => Ok(listed.boxed()),
                Fate::Cut => {
                    Ok(listed.take(1).chain(futures::stream::iter([Err(fault())])).boxed())
                }
                _ => Err(fault()),
            }
        })
        .try_flatten()
        .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let key = prefix.cloned().unwrap_or_default();
        let operation = Operation { action: Action::List, key: &key };
        let fate = self.before(operation).await;
        let result = match fate {
            Fate::Pass => self.inner.list_with_delimiter(prefix).await,
            _ => Err(fault()),
        };
        let result = result.map(|mut listed| {
            listed.objects = listed.objects.into_iter().map(|meta| self.timed(meta)).collect();
            listed
        });
        self.after(operation, fate).await;
        result
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Pages in byte order, so that what runs on this store can be told to look tips up by page.
#[async_trait]
impl PaginatedListStore for FaultyStore {
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        options: PaginatedListOptions,
    ) -> Result<PaginatedListResult> {
        let PaginatedListOptions { offset, max_keys, extensions, .. } = options;
        let folder = Path::from(prefix.unwrap_or_default());
        let mut objects: Vec<ObjectMeta> = self.list(Some(&folder)).try_collect().await?;
        let after = |meta: &ObjectMeta| {
            offset.as_deref().is_none_or(|offset| meta.location.as_ref() > offset)
        };
        objects.retain(after);
        objects.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        objects.truncate(max_keys.unwrap_or(usize::MAX));
        let result = ListResult { common_prefixes: Vec::new(), objects, extensions };
        Ok(PaginatedListResult { result, page_token: None })
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({})", self.inner)
    }
}

/// A body whose first half arrives, and then an error.
fn cut(result: GetResult) -> GetResult {
    let (meta, range) = (result.meta.clone(), result.range.clone());
    let (attributes, extensions) = (result.attributes.clone(), result.extensions.clone());
    let half = result
        .into_stream()
        .take(1)
        .map_ok(|piece| piece.slice(..piece.len() / 2))
        .chain(futures::stream::iter([Err(fault())]));
    GetResult {
        payload: GetResultPayload::Stream(half.boxed()),
        meta,
        range,
        attributes,
        extensions,
    }
}

fn fault() -> Error {
    Error::Generic { store: "FaultyStore", source: "a fault on purpose".into() }
}

fn exists(key: &Path) -> Error {
    Error::AlreadyExists { path: key.to_string(), source: "a conflict on purpose".into() }
}

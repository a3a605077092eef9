//! A bucket: an object store, and the objects in it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{GetOptions, GetResult, ObjectStore, ObjectStoreExt as _};

use crate::collect::GRACE;
use crate::digest::{Digest, Hasher};
use crate::environment::Environment;
use crate::error::Error;
use crate::layout;
use crate::tip::TipLookup;

/// Where everything lives. Cheap to clone.
#[derive(Clone)]
pub struct Bucket {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) tips: TipLookup,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) grace: Duration,
}

/// An object that is being read.
pub struct Body {
    /// Its length in bytes.
    pub size: u64,
    /// Its bytes. The last piece comes only once all of them have been found to match the hash;
    /// [`Error::Corrupt`] comes in its place if they do not.
    pub stream: BoxStream<'static, Result<Bytes, Error>>,
}

impl Bucket {
    /// A bucket on a store that honours put-if-absent ([`object_store::PutMode::Create`]).
    #[must_use]
    pub fn new(
        store: Arc<dyn ObjectStore>,
        tips: TipLookup,
        environment: Arc<dyn Environment>,
    ) -> Self {
        Self { store, tips, environment, grace: GRACE }
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// The time and randomness that this bucket uses.
    #[must_use]
    pub fn environment(&self) -> &Arc<dyn Environment> {
        &self.environment
    }

    /// Stores bytes as an object. Storing the same bytes twice is storing them once.
    ///
    /// # Errors
    /// [`Error::Store`] if the store does not take it.
    pub async fn put_object(&self, bytes: Bytes) -> Result<Digest, Error> {
        let hash = Digest::of(&bytes);
        self.put_hashed(hash, bytes).await?;
        Ok(hash)
    }

    /// Stores bytes whose digest is known already.
    pub(crate) async fn put_hashed(&self, hash: Digest, bytes: Bytes) -> Result<(), Error> {
        self.put_idempotent(&layout::object(&hash), bytes).await
    }

    /// Whether the bucket holds an object of its own with this hash.
    ///
    /// # Errors
    /// [`Error::Store`] if the store does not answer.
    pub async fn has_object(&self, hash: &Digest) -> Result<bool, Error> {
        let key = layout::object(hash);
        match self.store.head(&key).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(source) => Err(Error::store("look up", &key, source)),
        }
    }

    /// Reads an object whole and checks it against its hash.
    ///
    /// # Errors
    /// [`Error::ObjectNotFound`], [`Error::Corrupt`] or [`Error::Store`].
    pub async fn get_object(&self, hash: &Digest) -> Result<Bytes, Error> {
        let key = layout::object(hash);
        let result = self.open(hash, &key, GetOptions::default()).await?;
        let bytes = result.bytes().await.map_err(|source| Error::store("read", &key, source))?;
        if Digest::of(&bytes) == *hash { Ok(bytes) } else { Err(mismatch(&key)) }
    }

    /// Reads an object piece by piece, checking it against its hash on the way.
    ///
    /// # Errors
    /// [`Error::ObjectNotFound`] or [`Error::Store`]; the stream gives [`Error::Corrupt`].
    pub async fn read_object(&self, hash: &Digest) -> Result<Body, Error> {
        let key = layout::object(hash);
        let result = self.open(hash, &key, GetOptions::default()).await?;
        let size = result.meta.size;
        let pieces = result.into_stream();
        let (hash, hasher) = (*hash, Hasher::default());
        let start = (pieces, Some(hasher), None::<Bytes>);
        let stream = futures::stream::try_unfold(start, move |(mut pieces, hasher, held)| {
            let key = key.clone();
            async move {
                let Some(mut hasher) = hasher else { return Ok(None) };
                loop {
                    let next = pieces.try_next().await;
                    match next.map_err(|source| Error::store("read", &key, source))? {
                        Some(piece) if piece.is_empty() => {}
                        Some(piece) => {
                            hasher.update(&piece);
                            if let Some(held) = held {
                                return Ok(Some((held, (pieces, Some(hasher), Some(piece)))));
                            }
                            return Ok(Some((Bytes::new(), (pieces, Some(hasher), Some(piece)))));
                        }
                        None if hasher.finish() != hash => return Err(mismatch(&key)),
                        None => return Ok(held.map(|held| (held, (pieces, None, None)))),
                    }
                }
            }
        });
        let stream = stream.try_filter(|piece| futures::future::ready(!piece.is_empty())).boxed();
        Ok(Body { size, stream })
    }

    /// Reads part of an object *without* checking it: for callers that have read it whole before.
    ///
    /// # Errors
    /// [`Error::ObjectNotFound`] or [`Error::Store`].
    pub async fn get_object_range(
        &self,
        hash: &Digest,
        range: std::ops::Range<u64>,
    ) -> Result<Bytes, Error> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let key = layout::object(hash);
        let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        let result = self.open(hash, &key, options).await?;
        result.bytes().await.map_err(|source| Error::store("read", &key, source))
    }

    async fn open(
        &self,
        hash: &Digest,
        key: &Path,
        options: GetOptions,
    ) -> Result<GetResult, Error> {
        self.store.get_opts(key, options).await.map_err(|source| match source {
            object_store::Error::NotFound { .. } => Error::ObjectNotFound { hash: *hash },
            source => Error::store("read", key, source),
        })
    }

    /// Reads a small file; `None` if it is not there.
    pub(crate) async fn get_file(&self, key: &Path) -> Result<Option<Bytes>, Error> {
        match self.store.get(key).await {
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(Error::store("read", key, source)),
            Ok(result) => match result.bytes().await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(source) => Err(Error::store("read", key, source)),
            },
        }
    }
}

fn mismatch(key: &Path) -> Error {
    Error::corrupt(key, "its bytes do not match its hash")
}

//! Bodies that a handler names by `uri`: fetched by the host before the step is committed.
//!
//! A handler must not have the host read what it could not be given: an address is fetched only if
//! it is an object of the bucket itself or lies under a prefix that the user allowed. Addresses are
//! compared part by part after decoding, and those that leave anything to be interpreted are
//! refused. Nothing here knows how to open a store over the network.

mod file;
mod location;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::object_store::path::Path;
use pugmark_log::object_store::{self, Attribute, GetOptions, ObjectStore};
use pugmark_log::{Bucket, Digest};

use self::location::Location;
use crate::error::Error;
use crate::handler::Output;

/// Bytes that all fetched bodies of a step may take together: 256 MiB. They are held in memory
/// until the step is committed.
pub const FETCH_LIMIT_BYTES: u64 = 256 * 1024 * 1024;

/// At most so many characters of an address go into a message.
const EXCERPT_CHARS: usize = 300;

/// Opens stores over the network.
pub trait OpenStore: Send + Sync {
    /// The store that `url` lies in. It is of a scheme other than `file` and under an allowed
    /// prefix; the second part of the answer is where it lies in the store.
    ///
    /// # Errors
    /// If there is no such kind of store, or it is not set up.
    fn open(&self, url: &str) -> Result<(Arc<dyn ObjectStore>, Path), object_store::Error>;
}

/// What may be fetched, and how.
pub struct Fetcher {
    bucket: Option<Location>,
    allowed: Vec<Location>,
    stores: Arc<dyn OpenStore>,
    limit_bytes: u64,
}

/// Why a body is not fetched: the handler's doing.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchFailure {
    /// Not an address that is fetched.
    #[error("its `uri` `{uri}` is not an address that can be fetched: {reason}")]
    Invalid {
        /// The address.
        uri: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Neither an object of the bucket nor under an allowed prefix.
    #[error(
        "its `uri` `{uri}` is neither an object of this bucket nor under a prefix that is allowed"
    )]
    NotAllowed {
        /// The address.
        uri: String,
    },
    /// A symbolic link leads out of the allowed folder.
    #[error("its `uri` `{uri}` leads out of the allowed prefix through a symbolic link")]
    Escapes {
        /// The address.
        uri: String,
    },
    /// Nothing is there.
    #[error("there is nothing at its `uri` `{uri}`")]
    NotFound {
        /// The address.
        uri: String,
    },
    /// A folder, a pipe or a device.
    #[error("its `uri` `{uri}` is not a regular file")]
    NotAFile {
        /// The address.
        uri: String,
    },
    /// Over [`FETCH_LIMIT_BYTES`].
    #[error(
        "its `uri` `{uri}` takes what the step fetches past {limit} bytes, their limit in total"
    )]
    TooLarge {
        /// The address.
        uri: String,
        /// The limit in bytes.
        limit: u64,
    },
}

/// Why a step has no bodies.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// The handler's doing.
    Failure(FetchFailure),
    /// The host's.
    Host(Error),
}

impl From<FetchFailure> for FetchError {
    fn from(failure: FetchFailure) -> Self {
        Self::Failure(failure)
    }
}

/// A body, and what the place where it was says of it.
struct Fetched {
    body: Bytes,
    content_type: Option<String>,
    content_encoding: Option<String>,
}

impl From<Bytes> for Fetched {
    fn from(body: Bytes) -> Self {
        Self { body, content_type: None, content_encoding: None }
    }
}

impl Fetcher {
    /// Fetches what lies in the bucket at `bucket_url`, and under the prefixes `allowed`.
    ///
    /// # Errors
    /// [`FetchFailure::Invalid`] for a prefix that cannot be one.
    pub fn new(
        bucket_url: &str,
        allowed: &[String],
        stores: Arc<dyn OpenStore>,
    ) -> Result<Self, FetchFailure> {
        let parse = |prefix: &String| {
            Location::parse_prefix(prefix).map_err(|reason| invalid(prefix, reason))
        };
        let allowed = allowed.iter().map(parse).collect::<Result<_, _>>()?;
        // What follows a question mark says how the bucket is reached, not where it is. A bucket whose
        // address is of another form has no objects that could be named by it.
        let (place, _) = bucket_url.split_once('?').unwrap_or((bucket_url, ""));
        let bucket = Location::parse_prefix(place).ok();
        Ok(Self { bucket, allowed, stores, limit_bytes: FETCH_LIMIT_BYTES })
    }

    /// Fetches the bodies of all outputs that have none yet.
    pub(crate) async fn fill(
        &self,
        bucket: &Bucket,
        outputs: &mut [Output],
    ) -> Result<(), FetchError> {
        let mut left = self.limit_bytes;
        for output in outputs {
            let Some(uri) = output.uri.take() else { continue };
            let fetched = self.fetch(bucket, &uri, left).await?;
            left -= fetched.body.len() as u64;
            output.body = fetched.body;
            let attributes = &mut output.attributes;
            attributes.content_type = attributes.content_type.take().or(fetched.content_type);
            attributes.content_encoding =
                attributes.content_encoding.take().or(fetched.content_encoding);
        }
        Ok(())
    }

    async fn fetch(&self, bucket: &Bucket, uri: &str, left: u64) -> Result<Fetched, FetchError> {
        let location = Location::parse(uri).map_err(|reason| invalid(uri, reason))?;
        if let Some(hash) = self.object_of_the_bucket(&location) {
            return Ok(self.fetch_object(bucket, &hash, uri, left).await?.into());
        }
        let allowed =
            self.allowed.iter().find_map(|prefix| Some((prefix, location.under(prefix)?)));
        let Some((prefix, rest)) = allowed else {
            return Err(FetchFailure::NotAllowed { uri: excerpt(uri) }.into());
        };
        if location.is_file() {
            let (folder, name) = file::place(prefix, rest);
            return file::read(folder, name, uri, left, self.limit_bytes).await.map(Into::into);
        }
        self.fetch_from_store(uri, left).await
    }

    /// The object that an address below the bucket's names.
    fn object_of_the_bucket(&self, location: &Location) -> Option<Digest> {
        match location.under(self.bucket.as_ref()?)? {
            [folder, name] if folder == "objects" => name.parse().ok(),
            _ => None,
        }
    }

    async fn fetch_object(
        &self,
        bucket: &Bucket,
        hash: &Digest,
        uri: &str,
        left: u64,
    ) -> Result<Bytes, FetchError> {
        let object = bucket.read_object(hash).await.map_err(|error| match error {
            pugmark_log::Error::ObjectNotFound { .. } => {
                FetchFailure::NotFound { uri: excerpt(uri) }.into()
            }
            error => FetchError::Host(error.into()),
        })?;
        let pieces = object.stream.map_err(|error| FetchError::Host(error.into())).boxed();
        self.collect(pieces, object.size, uri, left).await
    }

    async fn fetch_from_store(&self, uri: &str, left: u64) -> Result<Fetched, FetchError> {
        let failed = |source: object_store::Error| match source {
            object_store::Error::NotFound { .. } => {
                FetchFailure::NotFound { uri: excerpt(uri) }.into()
            }
            source => FetchError::Host(Error::Fetch { uri: excerpt(uri), source }),
        };
        let (store, path) = self.stores.open(uri).map_err(failed)?;
        let found = store.get_opts(&path, GetOptions::default()).await.map_err(failed)?;
        let attribute = |name| found.attributes.get(&name).map(|value| value.as_ref().to_owned());
        let content_type = attribute(Attribute::ContentType);
        let content_encoding = attribute(Attribute::ContentEncoding);
        let size = found.meta.size;
        let pieces = found.into_stream().map_err(failed).boxed();
        let body = self.collect(pieces, size, uri, left).await?;
        Ok(Fetched { body, content_type, content_encoding })
    }

    /// All pieces, at most `left` bytes, whatever size was announced.
    async fn collect(
        &self,
        mut pieces: BoxStream<'_, Result<Bytes, FetchError>>,
        size: u64,
        uri: &str,
        left: u64,
    ) -> Result<Bytes, FetchError> {
        let too_large = || FetchFailure::TooLarge { uri: excerpt(uri), limit: self.limit_bytes };
        if size > left {
            return Err(too_large().into());
        }
        let mut body = BytesMut::with_capacity(usize::try_from(size).unwrap_or_default());
        while let Some(piece) = pieces.try_next().await? {
            if (body.len() + piece.len()) as u64 > left {
                return Err(too_large().into());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }
}

fn invalid(uri: &str, reason: &'static str) -> FetchFailure {
    FetchFailure::Invalid { uri: excerpt(uri), reason }
}

/// An address for a message: what a handler wrote may be of any length.
fn excerpt(uri: &str) -> String {
    match uri.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &uri[..end]),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests;

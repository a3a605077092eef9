//! Put-if-absent, with the answers that a store may leave open settled.
//!
//! A time-out, a 409, a 429 or an `AlreadyExists` after a retried 5xx does not say whether the bytes
//! were written. Identical bytes are sent to the same key until the key is occupied, and what is
//! there is compared: a snapshot carries its writer's nonce, so equal bytes are our own.
//!
//! A store is best handed in so that it sends a create once and leaves repeating it to this module:
//! of several attempts made further down, only the last one's error comes up.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions};

use crate::bucket::Bucket;
use crate::error::Error;

/// How often a write whose outcome is open is repeated before giving up.
const ATTEMPTS: u32 = 8;
/// The pause before the first repetition; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// As how many attempts one counts that ran into a time-out: it has waited long enough already.
const TIMEOUT_ATTEMPTS: u32 = 4;

/// Found among the causes of a store's error: of this write, nothing was sent.
#[derive(thiserror::Error, Debug)]
#[error(transparent)]
pub struct NotSent(pub object_store::Error);

/// How a put-if-absent ended.
pub(crate) enum Put {
    /// The key now holds our bytes.
    Won,
    /// The key holds other bytes.
    Lost,
}

impl Bucket {
    /// Writes `bytes` to `key` unless something is there already.
    ///
    /// # Errors
    /// [`Error::Unknown`] if it could not be found out whether the bytes were written;
    /// [`Error::Store`] if they certainly were not.
    pub(crate) async fn put_if_absent(&self, key: &Path, bytes: &Bytes) -> Result<Put, Error> {
        let mut attempt = 0;
        // Whether an attempt may have landed, or may still: then no later error is the last word.
        let mut open = false;
        loop {
            let source = match self.create_key(key, bytes).await {
                Ok(()) => return Ok(Put::Won),
                Err(exists @ object_store::Error::AlreadyExists { .. }) => {
                    open = true;
                    match self.get_file(key).await {
                        Ok(Some(found)) if found == *bytes => return Ok(Put::Won),
                        Ok(Some(_)) => return Ok(Put::Lost),
                        // A conflict that was reported although nothing is there: send it again.
                        Ok(None) => exists,
                        Err(Error::Store { source, .. }) => source,
                        Err(other) => return Err(other),
                    }
                }
                Err(source) if !open && is_definite(&source) => {
                    return Err(Error::store("write", key, source));
                }
                Err(source) => {
                    open |= !has_cause::<NotSent>(&source, |_| true);
                    source
                }
            };
            attempt = self.attempted(attempt, &source).await;
            if attempt >= ATTEMPTS && open {
                return Err(Error::Unknown { key: key.to_string(), source });
            } else if attempt >= ATTEMPTS {
                return Err(Error::store("write", key, source));
            }
        }
    }

    /// Writes bytes to a key whose content follows from its name, so that every writer writes the
    /// same.
    ///
    /// # Errors
    /// [`Error::Store`] if the store does not take them, or does not say that it has them.
    pub(crate) async fn put_idempotent(&self, key: &Path, bytes: Bytes) -> Result<(), Error> {
        let mut attempt = 0;
        loop {
            let source = match self.create_key(key, &bytes).await {
                Ok(()) => return Ok(()),
                // A conflict may be reported although nothing is there, and what meets with ours
                // may come to nothing: only a look tells.
                Err(exists @ object_store::Error::AlreadyExists { .. }) => {
                    match self.store.head(key).await {
                        Ok(found) => return self.keep_young(key, &bytes, &found).await,
                        Err(object_store::Error::NotFound { .. }) => exists,
                        Err(source) => source,
                    }
                }
                Err(source) => source,
            };
            if is_definite(&source) {
                return Err(Error::store("write", key, source));
            }
            attempt = self.attempted(attempt, &source).await;
            if attempt >= ATTEMPTS {
                return Err(Error::store("write", key, source));
            }
        }
    }

    /// Counts an attempt that ended with this error, and pauses if there is to be another.
    async fn attempted(&self, attempt: u32, error: &object_store::Error) -> u32 {
        let waited = has_cause::<io::Error>(error, |io| io.kind() == io::ErrorKind::TimedOut);
        let counted = attempt + if waited { TIMEOUT_ATTEMPTS } else { 1 };
        if counted < ATTEMPTS {
            self.pause(FIRST_PAUSE * 2_u32.pow(attempt)).await;
        }
        counted
    }

    async fn create_key(&self, key: &Path, bytes: &Bytes) -> Result<(), object_store::Error> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.store.put_opts(key, bytes.clone().into(), options).await.map(|_| ())
    }

    /// Waits between half and all of `longest`, so that writers who collided part.
    pub(crate) async fn pause(&self, longest: Duration) {
        let mut byte = [0];
        self.environment.fill_random(&mut byte);
        self.environment.sleep(longest / 2 + longest / 2 * u32::from(byte[0]) / 255).await;
    }
}

/// Whether an error says that nothing was written, and that trying again is no use.
fn is_definite(error: &object_store::Error) -> bool {
    use std::io::ErrorKind as Io;
    match error {
        object_store::Error::NotFound { .. }
        | object_store::Error::InvalidPath { .. }
        | object_store::Error::NotSupported { .. }
        | object_store::Error::NotImplemented { .. }
        | object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. }
        | object_store::Error::UnknownConfigurationKey { .. } => true,
        other => has_cause::<io::Error>(other, |io| {
            matches!(
                io.kind(),
                Io::StorageFull
                    | Io::QuotaExceeded
                    | Io::ReadOnlyFilesystem
                    | Io::PermissionDenied
                    | Io::NotADirectory
                    | Io::NotFound
                    | Io::FileTooLarge
                    | Io::InvalidInput
                    | Io::InvalidFilename
            )
        }),
    }
}

/// Whether the first of an error's causes of this type is such a one.
fn has_cause<E: std::error::Error + 'static>(
    error: &object_store::Error,
    such: impl Fn(&E) -> bool,
) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(found) = cause.downcast_ref::<E>() {
            return such(found);
        }
        source = cause.source();
    }
    false
}

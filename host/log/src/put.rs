//! Put-if-absent, with the answers that a store may leave open settled.
//!
//! A time-out, a 409, a 429 or an `AlreadyExists` after a retried 5xx does not say whether the bytes
//! were written. Identical bytes are sent to the same key until the key is occupied, and what is
//! there is compared: a snapshot carries its writer's nonce, so equal bytes are our own.

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
        loop {
            let source = match self.create_key(key, bytes).await {
                Ok(()) => return Ok(Put::Won),
                Err(exists @ object_store::Error::AlreadyExists { .. }) => {
                    match self.get_file(key).await {
                        Ok(Some(found)) if found == *bytes => return Ok(Put::Won),
                        Ok(Some(_)) => return Ok(Put::Lost),
                        // A conflict that was reported although nothing is there: send it again.
                        Ok(None) => exists,
                        Err(Error::Store { source, .. }) => source,
                        Err(other) => return Err(other),
                    }
                }
                // Once an attempt was left open, it may still land whatever a later one meets.
                Err(source) if attempt == 0 && is_definite(&source) => {
                    return Err(Error::store("write", key, source));
                }
                Err(source) => source,
            };
            if attempt + 1 == ATTEMPTS {
                return Err(Error::Unknown { key: key.to_string(), source });
            }
            self.pause(FIRST_PAUSE * 2_u32.pow(attempt)).await;
            attempt += 1;
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
                        Ok(_) => return Ok(()),
                        Err(object_store::Error::NotFound { .. }) => exists,
                        Err(source) => source,
                    }
                }
                Err(source) => source,
            };
            if attempt + 1 >= ATTEMPTS || is_definite(&source) {
                return Err(Error::store("write", key, source));
            }
            self.pause(FIRST_PAUSE * 2_u32.pow(attempt)).await;
            attempt += 1;
        }
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
        other => {
            let mut source = std::error::Error::source(other);
            while let Some(error) = source {
                if let Some(io) = error.downcast_ref::<std::io::Error>() {
                    return matches!(
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
                    );
                }
                source = error.source();
            }
            false
        }
    }
}

//! The components that steps name, each loaded once.

use std::collections::HashMap;
use std::sync::Arc;

use pugmark_log::{Bucket, Digest};
use tokio::sync::Mutex;

use crate::error::Error;
use crate::sandbox::{Component, LoadError, Sandbox};

/// A component, or why there is none to run.
pub(super) type Found = Result<Component, String>;

/// All of them.
pub(super) struct Components {
    bucket: Bucket,
    sandbox: Arc<Sandbox>,
    loaded: Mutex<HashMap<Digest, Found>>,
}

impl Components {
    pub(super) fn new(bucket: Bucket, sandbox: Arc<Sandbox>) -> Self {
        Self { bucket, sandbox, loaded: Mutex::default() }
    }

    /// The component with this digest. Its bytes are read even where compiled code is at hand: what
    /// a replay says of a bucket must not depend on the machine's cache.
    pub(super) async fn get(&self, digest: Digest) -> Result<Found, Error> {
        let mut loaded = self.loaded.lock().await;
        if let Some(found) = loaded.get(&digest) {
            return Ok(found.clone());
        }
        let found = self.load(digest).await?;
        loaded.insert(digest, found.clone());
        Ok(found)
    }

    async fn load(&self, digest: Digest) -> Result<Found, Error> {
        let bytes = match self.bucket.get_object(&digest).await {
            Ok(bytes) => bytes,
            Err(pugmark_log::Error::ObjectNotFound { .. }) => {
                return Ok(Err(format!("component {digest} is not in this bucket")));
            }
            Err(error) => return Err(error.into()),
        };
        let sandbox = Arc::clone(&self.sandbox);
        let load = move || sandbox.load_digest(digest, || Ok::<_, LoadError>(bytes));
        let loaded = tokio::task::spawn_blocking(load).await;
        match loaded.map_err(|join| Error::Internal { reason: join.to_string() })? {
            Ok(component) => Ok(Ok(component)),
            Err(error @ LoadError::Engine { .. }) => {
                Err(Error::Internal { reason: error.to_string() })
            }
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}

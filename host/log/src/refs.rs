//! Names for sessions.

use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::bucket::Bucket;
use crate::error::Error;
use crate::layout;
use crate::session_id::SessionId;

/// The persisted form: a line of JSON.
#[derive(Serialize, Deserialize)]
struct Record {
    session: SessionId,
}

impl Bucket {
    /// Names a session, in place of what had the name before.
    ///
    /// # Errors
    /// [`Error::InvalidRefName`] or [`Error::Store`].
    pub async fn link(&self, name: &str, session: &SessionId) -> Result<(), Error> {
        let key = layout::reference(name)?;
        let record = Record { session: *session };
        let mut line = serde_json::to_vec(&record).map_err(|source| Error::Encode { source })?;
        line.push(b'\n');
        let put = self.store.put(&key, line.into()).await;
        put.map(|_| ()).map_err(|source| Error::store("write", &key, source))
    }

    /// The session that has a name; `None` if none does.
    ///
    /// # Errors
    /// [`Error::InvalidRefName`], [`Error::Corrupt`] or [`Error::Store`].
    pub async fn find_ref(&self, name: &str) -> Result<Option<SessionId>, Error> {
        let key = layout::reference(name)?;
        let Some(bytes) = self.get_file(&key).await? else { return Ok(None) };
        let record: Record =
            serde_json::from_slice(&bytes).map_err(|source| Error::corrupt(&key, source))?;
        Ok(Some(record.session))
    }

    /// All names with their sessions, sorted by name.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Store`].
    pub async fn refs(&self) -> Result<Vec<(String, SessionId)>, Error> {
        let folder = Path::from(layout::REFS);
        let keys: Vec<_> = self
            .store
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|source| Error::store("list", &folder, source))?;
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(name) = key.location.as_ref().strip_prefix("refs/") else { continue };
            if let Some(session) = self.find_ref(name).await? {
                found.push((name.to_owned(), session));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Drops a name; the session stays.
    ///
    /// # Errors
    /// [`Error::RefNotFound`], [`Error::InvalidRefName`] or [`Error::Store`].
    pub async fn unlink(&self, name: &str) -> Result<(), Error> {
        let key = layout::reference(name)?;
        if self.get_file(&key).await?.is_none() {
            return Err(Error::RefNotFound { name: name.to_owned() });
        }
        match self.store.delete(&key).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(Error::store("remove", &key, source)),
        }
    }
}

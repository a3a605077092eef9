//! Listing sessions, by time partition, without reading a log.

use std::collections::HashSet;

use futures::future::ready;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ListResult;
use object_store::path::Path;

use crate::bucket::Bucket;
use crate::error::Error;
use crate::layout;
use crate::session_id::SessionId;

/// Folders between [`layout::SESSIONS`] and a session's own: year, month, day, hour.
const PARTITION_DEPTH: usize = 4;

impl Bucket {
    /// All sessions but removed ones, newest first. One listing for each hour that has sessions. May
    /// name one whose creation was cut short; [`Bucket::has_session`] tells. Of one whose removal
    /// was cut short right before its end, only a read tells.
    pub fn sessions(&self) -> BoxStream<'static, Result<SessionId, Error>> {
        self.all_sessions()
            .try_filter_map(|(id, removed)| ready(Ok((!removed).then_some(id))))
            .boxed()
    }

    /// All sessions, newest first, and whether each was removed.
    pub(crate) fn all_sessions(&self) -> BoxStream<'static, Result<(SessionId, bool), Error>> {
        let bucket = self.clone();
        let open = vec![(0, Path::from(layout::SESSIONS))];
        futures::stream::try_unfold(open, move |mut open| {
            let bucket = bucket.clone();
            async move {
                while let Some((depth, folder)) = open.pop() {
                    let Some(listing) = bucket.folder(&folder).await? else { continue };
                    let ListResult { common_prefixes: mut folders, objects, .. } = listing;
                    folders.sort_unstable();
                    if depth < PARTITION_DEPTH {
                        open.extend(folders.into_iter().map(|folder| (depth + 1, folder)));
                        continue;
                    }
                    let removed: HashSet<SessionId> = objects
                        .iter()
                        .filter_map(|meta| meta.location.filename())
                        .filter_map(|name| name.strip_suffix(layout::REMOVED_SUFFIX)?.parse().ok())
                        .collect();
                    let ids =
                        folders.iter().rev().filter_map(|folder| folder.filename()?.parse().ok());
                    let ids: Vec<Result<(SessionId, bool), Error>> =
                        ids.map(|id| Ok((id, removed.contains(&id)))).collect();
                    return Ok(Some((futures::stream::iter(ids), open)));
                }
                Ok(None)
            }
        })
        .try_flatten()
        .boxed()
    }

    /// The sessions that were forked from this one, oldest first. Names removed ones too, and
    /// may name one whose creation was cut short.
    ///
    /// # Errors
    /// [`Error::Store`] if the store does not answer.
    pub async fn children(&self, session: &SessionId) -> Result<Vec<SessionId>, Error> {
        let folder = layout::children(session);
        let keys: Vec<_> = self
            .store
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|source| Error::store("list", &folder, source))?;
        let mut ids: Vec<SessionId> =
            keys.iter().filter_map(|meta| meta.location.filename()?.parse().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// The sessions whose id begins or ends with `part`, newest first. Hyphens do not count. A
    /// whole id is taken at its word, without a look-up.
    ///
    /// # Errors
    /// [`Error::Store`] if the store does not answer.
    pub async fn find_sessions(&self, part: &str) -> Result<Vec<SessionId>, Error> {
        if let Ok(id) = part.parse() {
            return Ok(vec![id]);
        }
        let digits = part.replace('-', "").to_ascii_lowercase();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(Vec::new());
        }
        let matches = |id: &SessionId| {
            let id = id.to_string().replace('-', "");
            id.starts_with(&digits) || id.ends_with(&digits)
        };
        self.sessions().try_filter(|id| ready(matches(id))).try_collect().await
    }

    async fn folder(&self, folder: &Path) -> Result<Option<ListResult>, Error> {
        match self.store.list_with_delimiter(Some(folder)).await {
            Ok(listing) => Ok(Some(listing)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(Error::store("list", folder, source)),
        }
    }
}

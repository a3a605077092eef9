//! Components by name, in numbered versions.
//!
//! A version is one put-if-absent and never changes: what it stood for, it stands for always. One
//! that is removed leaves its number behind, so that no number ever comes to stand for something
//! else. The newest is found as a session's is.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::error::Error;
use crate::layout;
use crate::put::Put;
use crate::snapshot::{Format, parse_readable};
use crate::timestamp::Timestamp;

/// The number of a name's first version.
const FIRST: u64 = 1;
/// How many versions are read at a time.
const PARALLEL: usize = 16;
/// How long one who lost a number to another waits, at most.
const PAUSE: Duration = Duration::from_millis(20);

/// A version of a named component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandlerVersion {
    /// The name.
    pub name: String,
    /// Its number, from 1.
    pub version: u64,
    /// The component as it runs.
    pub component: Digest,
    /// The component's length in bytes.
    pub size: u64,
    /// When the version was added.
    pub created: Timestamp,
}

/// The persisted form: a line of JSON. The field order is the persisted order.
#[derive(Serialize, Deserialize)]
pub(crate) struct Record {
    format: Format,
    name: String,
    version: u64,
    created: Timestamp,
    nonce: String,
    /// `None` where the version was removed, and without a size then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    component: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl Record {
    fn to_line(&self) -> Result<bytes::Bytes, Error> {
        let mut line = serde_json::to_vec(self).map_err(|source| Error::Encode { source })?;
        line.push(b'\n');
        Ok(line.into())
    }
}

impl Bucket {
    /// Names a component that the bucket holds: the next version of `name`, or the newest one if
    /// that is the same component. Tells which, `true` for a new one.
    ///
    /// # Errors
    /// [`Error::InvalidHandlerName`], [`Error::ObjectNotFound`], [`Error::Corrupt`],
    /// [`Error::Unknown`] or [`Error::Store`].
    pub async fn add_handler(
        &self,
        name: &str,
        component: Digest,
        size: u64,
    ) -> Result<(HandlerVersion, bool), Error> {
        let folder = layout::handler(name)?;
        if !self.keep_object(&component).await? {
            return Err(Error::ObjectNotFound { hash: component });
        }
        loop {
            let newest = self.newest_in(&folder, FIRST, None).await?;
            if let Some(newest) = newest
                && let Some(found) = self.handler_version(name, newest).await?
                && found.component == component
            {
                return Ok((found, false));
            }
            let version = newest.map_or(FIRST, |newest| newest + 1);
            let created = self.environment.now();
            let record = self.handler_record(name, version, created, Some((component, size)));
            let key = layout::numbered(&folder, version);
            if let Put::Won = self.put_if_absent(&key, &record.to_line()?).await? {
                let name = name.to_owned();
                return Ok((HandlerVersion { name, version, component, size, created }, true));
            }
            self.pause(PAUSE).await;
        }
    }

    /// The newest version of a name that was not removed; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::InvalidHandlerName`], [`Error::Corrupt`], [`Error::NewerFormat`] or
    /// [`Error::Store`].
    pub async fn latest_handler(&self, name: &str) -> Result<Option<HandlerVersion>, Error> {
        let folder = layout::handler(name)?;
        let Some(newest) = self.newest_in(&folder, FIRST, None).await? else { return Ok(None) };
        for version in (FIRST..=newest).rev() {
            if let Some(found) = self.handler_version(name, version).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A version of a name; `None` if there is none, or it was removed.
    ///
    /// # Errors
    /// [`Error::InvalidHandlerName`], [`Error::Corrupt`], [`Error::NewerFormat`] or
    /// [`Error::Store`].
    pub async fn handler_version(
        &self,
        name: &str,
        version: u64,
    ) -> Result<Option<HandlerVersion>, Error> {
        let key = layout::numbered(&layout::handler(name)?, version);
        let Some(bytes) = self.get_file(&key).await? else { return Ok(None) };
        parse(&key, name, version, &bytes)
    }

    /// All versions of a name that were not removed, oldest first.
    ///
    /// # Errors
    /// As [`Bucket::handler_version`].
    pub async fn handler_versions(&self, name: &str) -> Result<Vec<HandlerVersion>, Error> {
        self.handlers_below(&layout::handler(name)?).await
    }

    /// All versions of all names that were not removed, by name, oldest first.
    ///
    /// # Errors
    /// As [`Bucket::handler_version`].
    pub async fn handlers(&self) -> Result<Vec<HandlerVersion>, Error> {
        self.handlers_below(&Path::from(layout::HANDLERS)).await
    }

    async fn handlers_below(&self, folder: &Path) -> Result<Vec<HandlerVersion>, Error> {
        let listed = self.store.list(Some(folder)).map_ok(|meta| meta.location);
        let keys: Vec<Path> =
            listed.try_collect().await.map_err(|source| Error::store("list", folder, source))?;
        let named = keys.into_iter().filter_map(|key| place(&key));
        let mut found: Vec<HandlerVersion> = futures::stream::iter(named)
            .map(|(name, version)| async move { self.handler_version(&name, version).await })
            .buffer_unordered(PARALLEL)
            .try_filter_map(|found| futures::future::ready(Ok(found)))
            .try_collect()
            .await?;
        found.sort_unstable_by(|a, b| (&a.name, a.version).cmp(&(&b.name, b.version)));
        Ok(found)
    }

    /// Removes a version of a name, or all, and returns what was removed. Sessions that are pinned to
    /// such a component keep it.
    ///
    /// # Errors
    /// [`Error::HandlerNotFound`] if there is none; otherwise as [`Bucket::handler_version`].
    pub async fn remove_handler(
        &self,
        name: &str,
        version: Option<u64>,
    ) -> Result<Vec<HandlerVersion>, Error> {
        let folder = layout::handler(name)?;
        let mut removed = self.handler_versions(name).await?;
        removed.retain(|found| version.is_none_or(|version| version == found.version));
        if removed.is_empty() {
            let version = version.map(|version| format!("@{version}")).unwrap_or_default();
            return Err(Error::HandlerNotFound { handler: format!("{name}{version}") });
        }
        // The newest goes last: while one is left, what a name stands for goes on being found.
        for found in &removed {
            let record = self.handler_record(name, found.version, self.environment.now(), None);
            let key = layout::numbered(&folder, found.version);
            let put = self.store.put(&key, record.to_line()?.into()).await;
            put.map_err(|source| Error::store("write", &key, source))?;
        }
        Ok(removed)
    }

    fn handler_record(
        &self,
        name: &str,
        version: u64,
        created: Timestamp,
        component: Option<(Digest, u64)>,
    ) -> Record {
        Record {
            format: Format::PLAIN,
            name: name.to_owned(),
            version,
            created,
            nonce: self.nonce(),
            component: component.map(|(component, _)| component),
            size: component.map(|(_, size)| size),
        }
    }

    /// What is wrong with the numbers and files of `handlers/`, with the key of each.
    pub(crate) async fn check_handlers(&self, keys: &[Path]) -> Result<Vec<(Path, String)>, Error> {
        let mut problems = Vec::new();
        let mut names: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for key in keys {
            let Some((name, version)) = place(key) else { continue };
            match self.handler_version(&name, version).await {
                Ok(_) => {}
                Err(Error::Corrupt { reason, .. }) => problems.push((key.clone(), reason)),
                Err(other) => return Err(other),
            }
            names.entry(name).or_default().push(version);
        }
        for (name, mut versions) in names {
            versions.sort_unstable();
            let mut expected = FIRST;
            for version in versions {
                for missing in expected..version {
                    let key = layout::numbered(&layout::handler(&name)?, missing);
                    problems.push((key, "it is missing".to_owned()));
                }
                expected = version + 1;
            }
        }
        Ok(problems)
    }
}

/// The name and version that a key below `handlers/` stands for; `None` if it is not of ours.
fn place(key: &Path) -> Option<(String, u64)> {
    let mut parts = key.as_ref().strip_prefix("handlers/")?.split('/');
    let (name, file) = (parts.next()?, parts.next()?);
    let version = layout::version_of(file).filter(|version| *version >= FIRST)?;
    let ours = parts.next().is_none() && layout::handler(name).is_ok();
    ours.then(|| (name.to_owned(), version))
}

fn parse(
    key: &Path,
    name: &str,
    version: u64,
    bytes: &[u8],
) -> Result<Option<HandlerVersion>, Error> {
    let record: Record = parse_readable(bytes, key, |record: &Record| record.format)?;
    if (record.name.as_str(), record.version) != (name, version) {
        let reason = format!("it is version {} of `{}`", record.version, record.name);
        return Err(Error::corrupt(key, reason));
    }
    let Some(component) = record.component else { return Ok(None) };
    let (size, created) = (record.size.unwrap_or(0), record.created);
    Ok(Some(HandlerVersion { name: record.name, version, component, size, created }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_are_taken_for_versions() {
        let place = |key: &str| place(&Path::from(key));
        assert_eq!(place("handlers/triage/fffffffffffffffe.json"), Some(("triage".into(), 1)));
        for key in [
            "handlers/triage",
            "handlers/triage/ffffffffffffffff.json",
            "handlers/triage/1.json",
            "handlers/a b/fffffffffffffffe.json",
            "handlers/a/b/fffffffffffffffe.json",
            "refs/triage/fffffffffffffffe.json",
        ] {
            assert_eq!(place(key), None, "{key}");
        }
    }
}

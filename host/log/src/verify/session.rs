//! One session, version after version.

use std::collections::HashSet;

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use serde::Deserialize;

use super::content::{Content, Flaw, damage};
use super::{Damage, Finding};
use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::error::Error;
use crate::layout;
use crate::manifest::Manifest;
use crate::session_id::SessionId;
use crate::snapshot::Snapshot;
use crate::tombstone::Tombstone;
use crate::trace::answers_in;

/// How many snapshots are read ahead.
const AHEAD: usize = 4;

/// What is found in a session, each key once.
struct Findings {
    session: SessionId,
    keys: HashSet<String>,
    found: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, damage: Damage, version: Option<u64>, flaw: Flaw) {
        let Flaw { key, problem, readable } = flaw;
        if self.keys.insert(format!("{key} {problem}")) {
            let session = Some(self.session);
            self.found.push(Finding { damage, session, version, key, problem, readable });
        }
    }
}

fn flaw(key: &Path, problem: impl Into<String>, readable: &str) -> Flaw {
    Flaw { key: key.to_string(), problem: problem.into(), readable: readable.to_owned() }
}

/// What a step's record says of the component that ran.
#[derive(Deserialize)]
struct StepRecord {
    #[serde(default)]
    component: Option<Digest>,
}

impl Bucket {
    /// Checks a session. One that never came to be has no findings.
    pub(super) async fn check_session(
        &self,
        content: &Content,
        session: &SessionId,
    ) -> Result<Vec<Finding>, Error> {
        let mut findings = Findings { session: *session, keys: HashSet::new(), found: Vec::new() };
        let versions = self.versions(session).await?;
        let Some(newest) = versions.last().copied() else { return Ok(Vec::new()) };
        let newest_read = self.snapshot(session, newest).await;
        let manifest = self.check_manifest(&mut findings, session).await?;
        if let Err(Error::SessionRemoved { .. }) = newest_read {
            self.check_removed(&mut findings, session, newest).await?;
            return Ok(findings.found);
        }
        if let Some(component) = manifest.as_ref().and_then(|manifest| manifest.component)
            && let Some(flaw) = content.check_object(component, None).await?
        {
            findings.add(Damage::Lost, None, flaw);
        }
        self.check_versions(&mut findings, content, manifest.as_ref(), newest).await?;
        Ok(findings.found)
    }

    /// The versions that are there, in order.
    pub(crate) async fn versions(&self, session: &SessionId) -> Result<Vec<u64>, Error> {
        let folder = layout::snapshots(session);
        let listed = self.store.list(Some(&folder)).map_ok(|meta| meta.location);
        let keys: Vec<Path> =
            listed.try_collect().await.map_err(|source| Error::store("list", &folder, source))?;
        let version = |key: &Path| key.filename().and_then(layout::version_of);
        let mut versions: Vec<u64> = keys.iter().filter_map(version).collect();
        versions.sort_unstable();
        Ok(versions)
    }

    async fn check_manifest(
        &self,
        findings: &mut Findings,
        session: &SessionId,
    ) -> Result<Option<Manifest>, Error> {
        let key = layout::manifest(session);
        let readable = "its log; not its handler, its metadata and what it was forked from";
        let manifest = match self.manifest(session).await {
            Ok(manifest) => manifest,
            Err(Error::SessionNotFound { .. }) => {
                findings.add(Damage::Lost, None, flaw(&key, "it is missing", readable));
                return Ok(None);
            }
            Err(error) => {
                findings.add(Damage::Lost, None, flaw(&key, damage(error)?, readable));
                return Ok(None);
            }
        };
        let Some(parent) = &manifest.parent else { return Ok(Some(manifest)) };
        let index = layout::children(&parent.session).join(session.to_string());
        match self.store.head(&index).await {
            Ok(_) => {}
            Err(object_store::Error::NotFound { .. }) => {
                let readable = "all of it; its parent's forks are listed without it";
                findings.add(Damage::Minor, None, flaw(&index, "it is missing", readable));
            }
            Err(source) => return Err(Error::store("look up", &index, source)),
        }
        let problem = match self.snapshot(&parent.session, parent.version).await {
            Ok(Some(forked)) if forked.digest() == parent.snapshot => return Ok(Some(manifest)),
            Ok(Some(_)) => "the version that it was forked from has other bytes now".to_owned(),
            Ok(None) => "the version that it was forked from is missing".to_owned(),
            Err(Error::SessionRemoved { .. }) => return Ok(Some(manifest)),
            // It is a finding of the parent.
            Err(error) => damage(error)?,
        };
        findings.add(Damage::Minor, Some(0), flaw(&key, problem, "all of it"));
        Ok(Some(manifest))
    }

    async fn check_removed(
        &self,
        findings: &mut Findings,
        session: &SessionId,
        last: u64,
    ) -> Result<(), Error> {
        let marker = layout::removed(session);
        match self.store.head(&marker).await {
            Ok(_) => {}
            Err(object_store::Error::NotFound { .. }) => {
                let readable = "nothing: it was removed; remove it again to end its listing";
                findings.add(Damage::Minor, Some(last), flaw(&marker, "it is missing", readable));
            }
            Err(source) => return Err(Error::store("look up", &marker, source)),
        }
        let Some(before) = last.checked_sub(1) else { return Ok(()) };
        let key = layout::snapshot(session, last);
        let Some(bytes) = self.get_file(&key).await? else { return Ok(()) };
        let parent = Tombstone::parse(&bytes, &key).and_then(|tombstone| tombstone.parent);
        if let Ok(Some(snapshot)) = self.snapshot(session, before).await
            && parent.is_some_and(|parent| parent != snapshot.digest())
        {
            let problem = "it does not name the digest of the version before it";
            findings.add(Damage::Lost, Some(last), flaw(&key, problem, "nothing: it was removed"));
        }
        Ok(())
    }

    async fn check_versions(
        &self,
        findings: &mut Findings,
        content: &Content,
        manifest: Option<&Manifest>,
        newest: u64,
    ) -> Result<(), Error> {
        let (bucket, session) = (self.clone(), findings.session);
        let mut reads = futures::stream::iter(0..=newest)
            .map(move |version| {
                let bucket = bucket.clone();
                async move { (version, bucket.snapshot(&session, version).await) }
            })
            .buffered(AHEAD);
        let mut before: Option<Snapshot> = None;
        while let Some((version, read)) = reads.next().await {
            let key = layout::snapshot(&session, version);
            let readable = if version == newest {
                "the versions before it; nothing can be appended"
            } else {
                "all other versions"
            };
            let problem = match read {
                Ok(Some(snapshot)) => {
                    self.check_version(findings, content, manifest, before.as_ref(), &snapshot)
                        .await?;
                    before = Some(snapshot);
                    continue;
                }
                Ok(None) => "it is missing".to_owned(),
                Err(Error::SessionRemoved { .. }) => "it says that it was removed".to_owned(),
                Err(error) => damage(error)?,
            };
            findings.add(Damage::Lost, Some(version), flaw(&key, problem, readable));
            before = None;
        }
        Ok(())
    }

    async fn check_version(
        &self,
        findings: &mut Findings,
        content: &Content,
        manifest: Option<&Manifest>,
        before: Option<&Snapshot>,
        snapshot: &Snapshot,
    ) -> Result<(), Error> {
        let version = Some(snapshot.version);
        let mut flaws = content.check_log(&snapshot.log).await?;
        flaws.extend(content.check_entries(&snapshot.objects).await?);
        for item in &snapshot.last.outbox {
            flaws.extend(content.check_entries(std::slice::from_ref(&item.entry)).await?);
        }
        let record = snapshot.step.as_ref().map(|step| serde_json::from_str(step.get()));
        if let Some(Ok(StepRecord { component: Some(component) })) = record {
            flaws.extend(content.check_object(component, None).await?);
        }
        for record in [&snapshot.step, &snapshot.trace].into_iter().flatten() {
            for (hash, size) in answers_in(record) {
                flaws.extend(content.check_object(hash, size).await?);
            }
        }
        for flaw in flaws {
            findings.add(Damage::Lost, version, flaw);
        }
        let checked = match (before, manifest) {
            (Some(before), _) => self.check_next(before, snapshot).await,
            (None, Some(manifest)) if snapshot.version == 0 => {
                self.check_first(manifest, snapshot).await
            }
            // What it follows is not known: that is a finding of its own.
            _ => return Ok(()),
        };
        match checked {
            Ok(broken) => {
                let key = layout::snapshot(&snapshot.session, snapshot.version);
                let readable =
                    "all of it; but it, or the version before it, is not as it was written";
                for rule in broken.0 {
                    findings.add(Damage::Lost, version, flaw(&key, rule, readable));
                }
                Ok(())
            }
            // A node that could not be read was found above.
            Err(error) => damage(error).map(drop),
        }
    }
}

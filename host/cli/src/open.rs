//! Opening what a command works on: the bucket, and the session and version that it names.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pugmark_log::object_store::ObjectStore;
use pugmark_log::object_store::local::LocalFileSystem;
use pugmark_log::object_store::memory::InMemory;
use pugmark_log::{Bucket, SessionId, Snapshot, TipLookup};
use url::Url;

use crate::context::Context;
use crate::environment::System;
use crate::error::Error;
use crate::stores::{self, Connection};

/// What this invocation says of the connection to the bucket's store.
static CONNECTION: OnceLock<Connection> = OnceLock::new();

/// Takes what the command line says of the connection to the bucket's store. Once, before anything
/// is opened.
pub fn configure(connection: Connection) {
    let _ = CONNECTION.set(connection);
}

/// What every command begins with.
pub struct Workspace {
    /// The context, with the bucket of this invocation.
    pub context: Context,
    /// The bucket.
    pub bucket: Bucket,
}

impl Workspace {
    /// Opens the bucket that `-b` names, or else the context's.
    ///
    /// # Errors
    /// If the context or the bucket cannot be opened.
    pub fn open(bucket: Option<&str>) -> Result<Self, Error> {
        let mut context = Context::load()?;
        let url = bucket_url(bucket.unwrap_or(&context.bucket))?;
        if url != context.bucket {
            context = Context { bucket: url, session: None };
        }
        let bucket = open_bucket(&context.bucket)?;
        Ok(Self { context, bucket })
    }

    /// Makes a session the current one, and this bucket the current bucket.
    ///
    /// # Errors
    /// If the context cannot be written.
    pub fn switch_to(&mut self, session: SessionId) -> Result<(), Error> {
        if self.context.session == Some(session) {
            return Ok(());
        }
        self.context.session = Some(session);
        // What is in memory is gone with this process, so nothing later can begin there.
        if self.context.bucket.starts_with("memory:") {
            return Ok(());
        }
        self.context.save()
    }

    /// Makes sure that a session is not the current one any more.
    ///
    /// # Errors
    /// If the context cannot be written.
    pub fn forget(&mut self, session: SessionId) -> Result<(), Error> {
        if self.context.session != Some(session) {
            return Ok(());
        }
        self.context.session = None;
        self.context.save()
    }

    /// The session that `-s` names, or else the current one.
    ///
    /// # Errors
    /// If there is none, or several.
    pub async fn session(&self, named: Option<&str>) -> Result<SessionId, Error> {
        match named {
            Some(name) => self.find_session(name).await,
            None => self.context.session.ok_or_else(|| {
                Error::not_found(
                    format!("there is no current session in {}", self.context.bucket),
                    "`pugmark start` creates one, `pugmark switch <id>` takes one up",
                )
            }),
        }
    }

    /// The session with this id, unique beginning or end of an id, or name.
    ///
    /// # Errors
    /// If there is none, or several.
    pub async fn find_session(&self, text: &str) -> Result<SessionId, Error> {
        let text = text.trim();
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        match self.bucket.find_ref(text).await {
            Ok(Some(id)) => return Ok(id),
            Ok(None) | Err(pugmark_log::Error::InvalidRefName { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let mut found = self.bucket.find_sessions(text).await?;
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(Error::not_found(
                format!(
                    "no session of {} is named `{text}` or has an id that begins or ends so",
                    self.context.bucket
                ),
                "`pugmark sessions` lists them",
            )),
            _ => Err(Error::Ambiguous { part: text.to_owned(), candidates: found }),
        }
    }

    /// The snapshot that `-s ID[:VERSION]` names, or else the current session's newest.
    ///
    /// # Errors
    /// If there is no such session or version.
    pub async fn snapshot(&self, named: Option<&str>) -> Result<Snapshot, Error> {
        let (session, version) = match named.map(|text| text.rsplit_once(':').unwrap_or((text, "")))
        {
            None => (self.session(None).await?, ""),
            Some((session, version)) => (self.find_session(session).await?, version),
        };
        if version.is_empty() {
            return Ok(self.bucket.tip(&session, None).await?);
        }
        let number = version.trim_start_matches('v').parse().map_err(|_| {
            let message = format!("`{version}` is not a version");
            Error::invalid(message, "write -s <session>:<version>, such as 019a8c:3")
        })?;
        Ok(self.bucket.snapshot_named(&session, number).await?)
    }
}

/// A bucket's URL in its one spelling; a plain path is a local folder.
fn bucket_url(named: &str) -> Result<String, Error> {
    if !named.contains("://") {
        let path = std::path::absolute(named).map_err(|source| Error::File {
            action: "find",
            path: named.to_owned(),
            source,
        })?;
        let url = Url::from_directory_path(&path).map_err(|()| unusable(named))?;
        return Ok(url.to_string());
    }
    let mut url = Url::parse(named).map_err(|_| unusable(named))?;
    if url.scheme() == "file" && !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    if stores::is_remote(named) {
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        CONNECTION.get().cloned().unwrap_or_default().write_to(&mut url)?;
    }
    Ok(url.to_string())
}

fn open_bucket(url: &str) -> Result<Bucket, Error> {
    let parsed = Url::parse(url).map_err(|_| unusable(url))?;
    if stores::is_remote(url) {
        return stores::open(&parsed);
    }
    let store: Arc<dyn ObjectStore> = match parsed.scheme() {
        "file" => Arc::new(open_folder(&parsed.to_file_path().map_err(|()| unusable(url))?)?),
        "memory" => Arc::new(InMemory::new()),
        _ => return Err(unusable(url)),
    };
    Ok(Bucket::new(store, TipLookup::Probe, Arc::new(System)))
}

fn open_folder(path: &PathBuf) -> Result<LocalFileSystem, Error> {
    if !path.is_dir() {
        return Err(Error::not_found(
            format!("there is no bucket at `{}`: it is not a folder", path.display()),
            format!("`mkdir -p '{}'` makes an empty one", path.display()),
        ));
    }
    let store = LocalFileSystem::new_with_prefix(path)
        .map_err(|source| Error::invalid(source.to_string(), None))?;
    Ok(store.with_fsync(true))
}

fn unusable(url: &str) -> Error {
    Error::invalid(
        format!("`{url}` is not a bucket that this version can open"),
        "give a folder, s3://bucket/folder, gs://bucket/folder or az://container/folder",
    )
}

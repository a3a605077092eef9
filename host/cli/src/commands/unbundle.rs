use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use pugmark_log::bundle::{self, Unbundled};
use pugmark_log::object_store::local::LocalFileSystem;
use pugmark_log::{Bucket, SessionId, TipLookup};
use serde::Serialize;
use url::Url;

use crate::bundles::{BundleLimits, error_of, note_absent, open_file};
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{is_json, note, to_json, to_stdout};

/// Put the sessions of bundles into the bucket
///
/// All of a bundle is checked before any of its sessions is written. What is there already stays;
/// doing it again changes nothing. A session that went on otherwise in the bucket is a conflict.
/// Prints the sessions.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark unbundle run.pug\n  \
    pugmark -b s3://bucket/agents unbundle pins/*.pug")]
pub struct Unbundle {
    /// The bundles
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    limits: BundleLimits,
}

/// A session that came out of a bundle, as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    file: &'a Path,
    session: SessionId,
    version: u64,
    ancestor: bool,
    new: bool,
}

impl Unbundle {
    pub fn run(self, bucket: Option<&str>) -> Result<ExitCode, Error> {
        let workspace = Workspace::open(bucket)?;
        // Large local files, too, are written on threads of their own while the bundle is read.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| pugmark_runtime::Error::Io {
            action: "start a runtime".into(),
            source,
        })?;
        runtime.block_on(self.put_all(workspace)).map(|()| ExitCode::SUCCESS)
    }

    async fn put_all(self, workspace: Workspace) -> Result<(), Error> {
        let bulk = Bulk::of(&workspace)?;
        for path in &self.files {
            let file = open_file(path)?;
            let limits = self.limits.limits();
            let target = bundle::Bulk {
                bucket: bulk.bucket.clone(),
                local: bulk.folder.is_some(),
                sync: &|| bulk.sync(),
            };
            let unbundled = bundle::unbundle(file, limits, &workspace.bucket, &target).await;
            show(path, &unbundled.map_err(|error| error_of(path, error))?)?;
        }
        Ok(())
    }
}

fn show(path: &Path, unbundled: &Unbundled) -> Result<(), Error> {
    let Unbundled { contents, new } = unbundled;
    note_absent(&contents.absent);
    for held in &contents.sessions {
        let (session, version, ancestor) = (held.session, held.version, held.ancestor);
        let new = new.contains(&session);
        if is_json() {
            to_json(&View { file: path, session, version, ancestor, new })?;
            continue;
        }
        match (new, ancestor) {
            (true, true) => note(&format!("{session} up to v{version}, as a fork needs it")),
            (true, false) => note(&format!("{session} up to v{version}")),
            (false, _) => note(&format!("{session} was there already")),
        }
        if !ancestor {
            to_stdout(|out| writeln!(out, "{session}"))?;
        }
    }
    Ok(())
}

/// The bucket for writes that become durable together.
struct Bulk {
    bucket: Bucket,
    /// The folder of a bucket of local files.
    folder: Option<File>,
}

impl Bulk {
    fn of(workspace: &Workspace) -> Result<Self, Error> {
        let bucket = &workspace.bucket;
        let url = Url::parse(&workspace.context.bucket).ok().filter(|url| url.scheme() == "file");
        let Some(path) = url.and_then(|url| url.to_file_path().ok()) else {
            return Ok(Self { bucket: bucket.clone(), folder: None });
        };
        let failed =
            |source| Error::File { action: "open", path: path.display().to_string(), source };
        let folder = File::open(&path).map_err(failed)?;
        let store = LocalFileSystem::new_with_prefix(&path)
            .map_err(|source| failed(io::Error::other(source)))?;
        let environment = bucket.environment().clone();
        let bucket = Bucket::new(Arc::new(store), TipLookup::Probe, environment);
        Ok(Self { bucket, folder: Some(folder) })
    }

    /// Makes durable what was written so far.
    fn sync(&self) -> io::Result<()> {
        match &self.folder {
            None => Ok(()),
            #[cfg(target_os = "linux")]
            Some(folder) => Ok(rustix::fs::syncfs(folder)?),
            #[cfg(not(target_os = "linux"))]
            Some(_) => {
                rustix::fs::sync();
                Ok(())
            }
        }
    }
}

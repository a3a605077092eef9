//! The context file: this user's current bucket and session.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use pugmark_log::SessionId;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// What the file holds.
#[derive(Clone, Serialize, Deserialize)]
pub struct Context {
    /// The bucket's URL.
    pub bucket: String,
    /// The current session, in that bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

impl Context {
    /// Reads the file; makes it, with the default bucket, if it is not there.
    ///
    /// # Errors
    /// If it cannot be read or made, or is not what this program writes.
    pub fn load() -> Result<Self, Error> {
        let path = path()?;
        match fs::read_to_string(&path) {
            Ok(text) => serde_saphyr::from_str(&text).map_err(|source| Error::Context {
                path: path.display().to_string(),
                source: Box::new(source),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(),
            Err(source) => Err(file("read", &path, source)),
        }
    }

    /// Whether there is a file to read: nothing was set up before the first use.
    pub fn exists() -> bool {
        path().is_ok_and(|path| path.exists())
    }

    fn create() -> Result<Self, Error> {
        let folder = home()?.join(".pugmark/buckets/default");
        fs::create_dir_all(&folder).map_err(|source| file("create", &folder, source))?;
        let bucket = url::Url::from_directory_path(&folder)
            .map_err(|()| Error::invalid("HOME is not an absolute path", "set HOME"))?;
        let context = Self { bucket: bucket.to_string(), session: None };
        context.save()?;
        Ok(context)
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self) -> Result<(), Error> {
        let path = path()?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(|source| file("create", folder, source))?;
        let text = serde_saphyr::to_string_with_options(self, on_one_line()).map_err(|source| {
            Error::Context { path: path.display().to_string(), source: Box::new(source) }
        })?;
        let write = || {
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            new.write_all(text.as_bytes())?;
            new.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|source| file("write", &path, source))
    }
}

/// A long URL stays on its line: people read and edit the file.
fn on_one_line() -> serde_saphyr::SerializerOptions {
    let mut options = serde_saphyr::SerializerOptions::default();
    options.prefer_block_scalars = false;
    options
}

/// Where compiled components are kept.
///
/// # Errors
/// If neither `XDG_CACHE_HOME` nor `HOME` says where.
pub fn cache_dir() -> Result<PathBuf, Error> {
    xdg("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("pugmark/components"))
}

/// Where tools are installed that building needs.
///
/// # Errors
/// If neither `XDG_CACHE_HOME` nor `HOME` says where.
pub fn tools_dir() -> Result<PathBuf, Error> {
    xdg("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("pugmark/tools"))
}

/// Where it is kept which stores honour put-if-absent.
///
/// # Errors
/// If neither `XDG_CACHE_HOME` nor `HOME` says where.
pub fn stores_dir() -> Result<PathBuf, Error> {
    xdg("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("pugmark/stores"))
}

fn path() -> Result<PathBuf, Error> {
    xdg("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("pugmark/context.yaml"))
}

/// A folder of the XDG base directory specification, which has relative paths ignored.
fn xdg(variable: &str, below_home: &str) -> Result<PathBuf, Error> {
    match env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(folder) => Ok(folder),
        None => Ok(home()?.join(below_home)),
    }
}

fn home() -> Result<PathBuf, Error> {
    env::home_dir().filter(|home| home.is_absolute()).ok_or_else(|| {
        Error::invalid("there is no home directory to keep the context in", "set HOME")
    })
}

fn file(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::File { action, path: path.display().to_string(), source }
}

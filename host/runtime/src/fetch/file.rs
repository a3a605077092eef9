//! Local files below an allowed folder. No symbolic link leads out of it.

use std::io::{self, Read as _};
use std::path::PathBuf;

use bytes::Bytes;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;

use super::location::Location;
use super::{FetchError, FetchFailure, excerpt};
use crate::error::Error;

/// The folder that must not be left, and where the file lies in it. A prefix that is the file
/// itself allows its folder to be looked into for that name.
pub(super) fn place(prefix: &Location, rest: &[String]) -> (PathBuf, PathBuf) {
    let mut folder = prefix.segments().to_vec();
    let mut name = rest.to_vec();
    if name.is_empty() {
        name.extend(folder.pop());
    }
    let folder = PathBuf::from("/").join(folder.iter().collect::<PathBuf>());
    (folder, name.iter().collect())
}

/// Reads a file, at most `left` bytes of `limit`.
pub(super) async fn read(
    folder: PathBuf,
    name: PathBuf,
    uri: &str,
    left: u64,
    limit: u64,
) -> Result<Bytes, FetchError> {
    let uri = excerpt(uri);
    let blocking = move || match read_now(&folder, &name, left) {
        Ok(Found::Body(body)) => Ok(body),
        Ok(Found::NotAFile) => Err(FetchFailure::NotAFile { uri }.into()),
        Ok(Found::TooLarge) => Err(FetchFailure::TooLarge { uri, limit }.into()),
        Err(error) if is_missing(&error) => Err(FetchFailure::NotFound { uri }.into()),
        // The system gives its number with every refusal of its own.
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && error.raw_os_error().is_none() =>
        {
            Err(FetchFailure::Escapes { uri }.into())
        }
        Err(source) => {
            let action = format!("read the `uri` `{uri}`");
            Err(FetchError::Host(Error::Io { action, source }))
        }
    };
    tokio::task::spawn_blocking(blocking)
        .await
        .unwrap_or_else(|join| Err(FetchError::Host(Error::Internal { reason: join.to_string() })))
}

enum Found {
    Body(Bytes),
    NotAFile,
    TooLarge,
}

fn read_now(folder: &std::path::Path, name: &std::path::Path, left: u64) -> io::Result<Found> {
    let folder = Dir::open_ambient_dir(folder, ambient_authority())?;
    let mut options = OpenOptions::new();
    // Opening a pipe would wait for a writer.
    options.read(true).custom_flags(nonblocking());
    let file = folder.open_with(name, &options)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Found::NotAFile);
    }
    if metadata.len() > left {
        return Ok(Found::TooLarge);
    }
    let mut body = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(left.saturating_add(1)).read_to_end(&mut body)?;
    Ok(if body.len() as u64 > left { Found::TooLarge } else { Found::Body(body.into()) })
}

fn nonblocking() -> i32 {
    i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

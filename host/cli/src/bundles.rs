//! Bundle files: writing them, opening them, and what they may cost.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use clap::Args;
use pugmark_log::bundle::{self, Limits, Opened, Written, is_bundle};
use pugmark_log::{Bucket, SessionId, Snapshot};

use crate::error::Error;
use crate::output::note;

/// What a bundle may cost.
#[derive(Args, Clone, Copy)]
pub struct BundleLimits {
    /// Bytes that a bundle may unpack to, such as 512MiB [default: 64GiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_unpacked: Option<u64>,
}

impl BundleLimits {
    /// As the library takes them.
    pub fn limits(self) -> Limits {
        let default = Limits::default();
        Limits { unpacked_bytes: self.max_unpacked.unwrap_or(default.unpacked_bytes) }
    }
}

/// Writes a bundle in place of the file at `path`, once it is whole.
///
/// # Errors
/// What is missing or damaged in the bucket, or a file that cannot be written.
pub async fn write(bucket: &Bucket, tips: &[Snapshot], path: &Path) -> Result<Written, Error> {
    let failed = |source| Error::File { action: "write", path: path.display().to_string(), source };
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(failed)?;
    let out = file.as_file().try_clone().map_err(failed)?;
    let (_, written) =
        bundle::write(bucket, tips, out).await.map_err(|error| error_of(path, error))?;
    file.persist(path).map_err(|error| failed(error.error))?;
    note_absent(&written.contents.absent);
    Ok(written)
}

/// Says which sessions a bundle could not take along.
pub fn note_absent(absent: &[SessionId]) {
    for session in absent {
        note(&format!(
            "warning: session {session}, which another one was forked from, is not there any more: \
             steps inherited from it cannot be replayed"
        ));
    }
}

/// Opens a bundle, checked and unpacked into a file without a name.
///
/// # Errors
/// If there is no such file, or if it is not a bundle as it was written.
pub fn open(path: &Path, limits: Limits) -> Result<Opened, Error> {
    let scratch = tempfile::tempfile().map_err(|source| Error::File {
        action: "make a file in",
        path: std::env::temp_dir().display().to_string(),
        source,
    })?;
    bundle::open(open_file(path)?, scratch, limits).map_err(|error| error_of(path, error))
}

/// Opens a file that is to be a bundle.
///
/// # Errors
/// If there is none, or if it is something else.
pub fn open_file(path: &Path) -> Result<File, Error> {
    let failed = |source| Error::File { action: "read", path: path.display().to_string(), source };
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    if is_bundle(&file).map_err(failed)? {
        return Ok(file);
    }
    Err(error_of(path, bundle::Error::NotBundle))
}

/// An error of a bundle, with its file where the error is about that.
pub fn error_of(path: &Path, error: bundle::Error) -> Error {
    match error {
        bundle::Error::Log(error) => Error::Log(error),
        source => Error::Bundle { path: path.display().to_string(), source },
    }
}

/// A number of bytes.
fn size(text: &str) -> Result<u64, String> {
    let invalid = || format!("`{text}` is not a size; write 65536, 64KiB, 512MiB or 2GiB");
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];
    let (digits, unit) = units
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .ok_or_else(invalid)?;
    let number: u64 = digits.trim_end().parse().map_err(|_| invalid())?;
    number.checked_mul(unit).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("17"), Ok(17));
        assert_eq!(size("3MiB"), Ok(3 << 20));
        assert_eq!(size("2 GiB"), Ok(2 << 30));
        for text in ["", "MiB", "-1", "1MB", "99999999999GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}

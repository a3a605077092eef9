//! Remembers which file held which component, so that an unchanged file is not read again.
//!
//! A file is known by where it is and by what the system says of it. A record that was written
//! within two seconds of the file's last change is not believed: the file may have changed once
//! more within the same tick of the clock.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use pugmark_log::Digest;
use serde::{Deserialize, Serialize};

use super::cache::Cache;

/// Nanoseconds that must lie between a file's change and the record of it.
const SETTLED_NS: i128 = 2_000_000_000;

/// What the system says of a file. Changes whenever the file's bytes do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A file that held a component.
#[derive(Serialize, Deserialize)]
struct Record {
    file: Identity,
    component: Digest,
}

impl Cache {
    /// The component that the file at `path` held when the system last said `identity` of it.
    pub(super) fn recall(&self, path: &Path, identity: &Identity) -> Option<Digest> {
        let at = self.record_path(path);
        let record: Record = serde_json::from_slice(&fs::read(&at).ok()?).ok()?;
        let written = Identity::of(&fs::metadata(&at).ok()?);
        let settled = nanoseconds(written.modified) - nanoseconds(identity.changed) >= SETTLED_NS;
        (settled && record.file == *identity).then_some(record.component)
    }

    /// Takes down that the file at `path`, of which the system says `identity`, holds `component`.
    pub(super) fn remember(&self, path: &Path, identity: &Identity, component: Digest) {
        let record = Record { file: identity.clone(), component };
        if let Ok(bytes) = serde_json::to_vec(&record) {
            // A record that cannot be written costs time only.
            let _ = self.write(&self.record_path(path), &bytes);
        }
    }

    /// A component is made of a file by this configuration, so records are each configuration's.
    fn record_path(&self, path: &Path) -> PathBuf {
        let path = Digest::of(path.as_os_str().as_bytes());
        self.entry(&format!("file-{}", path.hex()), "json")
    }
}

fn nanoseconds((seconds, nanoseconds): (i64, i64)) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    #[test]
    fn believes_a_record_once_the_file_has_settled() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::open(&home.path().join("cache"), Digest::of(b"x")).unwrap();
        let path = home.path().join("a.wasm");
        fs::write(&path, "one").unwrap();
        let identity = Identity::of(&fs::metadata(&path).unwrap());
        let component = Digest::of(b"one");
        assert_eq!(cache.recall(&path, &identity), None);

        cache.remember(&path, &identity, component);
        assert_eq!(cache.recall(&path, &identity), None, "just written");

        let record = File::options().write(true).open(cache.record_path(&path)).unwrap();
        let changed = fs::metadata(&path).unwrap().modified().unwrap();
        record.set_modified(changed + Duration::from_secs(5)).unwrap();
        assert_eq!(cache.recall(&path, &identity), Some(component));
        assert_eq!(cache.recall(&home.path().join("b.wasm"), &identity), None);

        fs::write(&path, "other").unwrap();
        let identity = Identity::of(&fs::metadata(&path).unwrap());
        assert_eq!(cache.recall(&path, &identity), None, "changed");
    }
}

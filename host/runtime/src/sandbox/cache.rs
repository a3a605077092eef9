//! Compiled code on disk, shared by all processes of one user.
//!
//! The directory is the user's own and closed to others, entries are written whole and renamed into
//! place, and each is sealed: the seal holds the code's digest and what the system said of the file.
//! While it still says so the code is used as it is; else it is hashed once more. Anything amiss is
//! a miss, never an error. Compiled code that others hand over has no way in.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use pugmark_log::{Digest, Hasher};
use serde::{Deserialize, Serialize};

use super::World;
use super::stamp::Identity;

/// What names of files that are still being written begin with.
pub(super) const UNFINISHED: &str = ".new-";

/// The extension of compiled code.
pub(super) const CODE: &str = "cwasm";

/// The cache directory, for one configuration of the engine.
pub(super) struct Cache {
    directory: PathBuf,
    configuration: String,
}

/// Compiled code that may be mapped and run.
pub(super) struct Hit {
    /// Where it is.
    pub path: PathBuf,
    /// How the component is called.
    pub world: World,
}

/// What is known of a file of compiled code.
#[derive(Serialize, Deserialize)]
struct Seal {
    file: Identity,
    code: Digest,
    world: World,
}

impl Cache {
    /// Opens the directory, making it if it is not there.
    ///
    /// # Errors
    /// Says why the directory cannot be trusted, or what the system said.
    pub(super) fn open(directory: &Path, configuration: Digest) -> Result<Self, String> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|error| error.to_string())?;
        let metadata = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
        if !metadata.is_dir() {
            return Err("it is no directory, or a link to one".to_owned());
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err("it belongs to another user".to_owned());
        }
        if metadata.mode() & 0o077 != 0 {
            return Err("it is open to other users; `chmod 700` closes it".to_owned());
        }
        Ok(Self { directory: directory.to_owned(), configuration: configuration.hex() })
    }

    /// The compiled code of a component, if it is here and whole.
    pub(super) fn find(&self, component: &Digest) -> Option<Hit> {
        let seal: Seal = serde_json::from_slice(&fs::read(self.seal_path(component)).ok()?).ok()?;
        let path = self.code_path(component);
        let metadata = fs::symlink_metadata(&path).ok().filter(Metadata::is_file)?;
        let file = Identity::of(&metadata);
        if file != seal.file {
            if digest_of(&path).ok() != Some(seal.code) {
                self.discard(component);
                return None;
            }
            self.seal(component, &Seal { file, ..seal });
        }
        Some(Hit { path, world: seal.world })
    }

    /// Keeps the compiled code of a component. `None` if that cannot be done.
    pub(super) fn keep(&self, component: &Digest, world: World, code: &[u8]) -> Option<Hit> {
        super::trim::trim(&self.directory);
        let path = self.code_path(component);
        self.write(&path, code).ok()?;
        let file = Identity::of(&fs::symlink_metadata(&path).ok()?);
        self.seal(component, &Seal { file, code: Digest::of(code), world });
        self.find(component)
    }

    /// Removes what was found to be unusable.
    pub(super) fn discard(&self, component: &Digest) {
        // What cannot be removed is found unusable again.
        let _ = fs::remove_file(self.seal_path(component));
        let _ = fs::remove_file(self.code_path(component));
    }

    /// A component that was made of a core module, if it is here. Not checked against its digest.
    pub(super) fn component(&self, component: &Digest) -> Option<Bytes> {
        fs::read(self.component_path(component)).ok().map(Bytes::from)
    }

    /// Keeps a component that was made of a core module.
    pub(super) fn keep_component(&self, component: &Digest, bytes: &[u8]) {
        // It can be made of the module again.
        let _ = self.write(&self.component_path(component), bytes);
    }

    /// The path of an entry of this configuration.
    pub(super) fn entry(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.join(format!("{name}-{}.{extension}", self.configuration))
    }

    /// Writes a file whole or not at all, and to the disk before its name: a seal must not vouch
    /// for what a power failure takes.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.directory)?;
        file.write_all(bytes)?;
        file.as_file().sync_data()?;
        file.persist(path)?;
        Ok(())
    }

    fn seal(&self, component: &Digest, seal: &Seal) {
        if let Ok(bytes) = serde_json::to_vec(seal) {
            // Code without a seal is a miss.
            let _ = self.write(&self.seal_path(component), &bytes);
        }
    }

    fn code_path(&self, component: &Digest) -> PathBuf {
        self.entry(&component.hex(), CODE)
    }

    fn seal_path(&self, component: &Digest) -> PathBuf {
        self.entry(&component.hex(), "json")
    }

    fn component_path(&self, component: &Digest) -> PathBuf {
        self.entry(&component.hex(), "wasm")
    }
}

/// The digest of a file's bytes.
fn digest_of(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn cache(home: &tempfile::TempDir) -> Cache {
        Cache::open(&home.path().join("cache"), Digest::of(b"configuration")).unwrap()
    }

    #[test]
    fn finds_what_it_keeps_under_the_same_configuration() {
        let home = tempfile::tempdir().unwrap();
        let cache = cache(&home);
        let component = Digest::of(b"component");
        assert!(cache.find(&component).is_none());
        let kept = cache.keep(&component, World::Typed, b"code").unwrap();
        assert_eq!(fs::read(&kept.path).unwrap(), b"code");
        let found = cache.find(&component).unwrap();
        assert_eq!((found.path, found.world), (kept.path, World::Typed));
        let other = Cache::open(&home.path().join("cache"), Digest::of(b"other")).unwrap();
        assert!(other.find(&component).is_none());
    }

    #[test]
    fn damaged_code_is_a_miss_and_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let cache = cache(&home);
        let component = Digest::of(b"component");
        let kept = cache.keep(&component, World::Command, b"code").unwrap();
        fs::write(&kept.path, "c0de").unwrap();
        assert!(cache.find(&component).is_none());
        assert!(!kept.path.exists());
        assert!(!cache.seal_path(&component).exists());
    }

    #[test]
    fn code_that_was_touched_is_hashed_once_more() {
        let home = tempfile::tempdir().unwrap();
        let cache = cache(&home);
        let component = Digest::of(b"component");
        let kept = cache.keep(&component, World::Command, b"code").unwrap();
        fs::write(&kept.path, "code").unwrap();
        assert!(cache.find(&component).is_some());
        let seal: Seal =
            serde_json::from_slice(&fs::read(cache.seal_path(&component)).unwrap()).unwrap();
        assert_eq!(seal.file, Identity::of(&fs::metadata(&kept.path).unwrap()));
    }

    #[test]
    fn a_damaged_or_missing_seal_is_a_miss() {
        let home = tempfile::tempdir().unwrap();
        let cache = cache(&home);
        let component = Digest::of(b"component");
        cache.keep(&component, World::Command, b"code").unwrap();
        fs::write(cache.seal_path(&component), "{").unwrap();
        assert!(cache.find(&component).is_none());
        fs::remove_file(cache.seal_path(&component)).unwrap();
        assert!(cache.find(&component).is_none());
    }

    #[test]
    fn a_directory_that_others_reach_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let open = home.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Cache::open(&open, Digest::of(b"")).is_err());
        let link = home.path().join("link");
        cache(&home);
        symlink(home.path().join("cache"), &link).unwrap();
        assert!(Cache::open(&link, Digest::of(b"")).is_err());
    }
}

//! Where things live in a bucket. `docs/storage-layout.md` is the specification.

use object_store::path::Path;

use crate::digest::Digest;
use crate::error::Error;
use crate::session_id::SessionId;

/// The root of all sessions.
pub const SESSIONS: &str = "sessions";
/// The root of all names.
pub const REFS: &str = "refs";
/// The root of all objects.
pub const OBJECTS: &str = "objects";
/// The root of the named components, a folder for each name.
pub const HANDLERS: &str = "handlers";
/// Where collections announce what they are about to delete.
pub const SWEEPS: &str = "gc";
/// The end of the key that says that a session was removed.
pub(crate) const REMOVED_SUFFIX: &str = ".removed";

/// The key of an object.
#[must_use]
pub fn object(hash: &Digest) -> Path {
    Path::from(format!("{OBJECTS}/{hash}"))
}

/// The folder of a session, which follows from its id alone.
#[must_use]
pub fn session(id: &SessionId) -> Path {
    let (year, month, day, hour) = id.created().partition();
    Path::from(format!(
        "{SESSIONS}/year={year:04}/month={month:02}/day={day:02}/hour={hour:02}/{id}"
    ))
}

/// The key that says to listings that a session was removed: a file beside its folder.
#[must_use]
pub fn removed(id: &SessionId) -> Path {
    Path::from(format!("{}{REMOVED_SUFFIX}", session(id)))
}

/// The key of a session's manifest.
#[must_use]
pub fn manifest(id: &SessionId) -> Path {
    session(id).join("manifest.json")
}

/// The folder of a session's snapshots.
#[must_use]
pub fn snapshots(id: &SessionId) -> Path {
    session(id).join("snapshots")
}

/// The key of a snapshot: the newest version sorts first.
#[must_use]
pub fn snapshot(id: &SessionId, version: u64) -> Path {
    numbered(&snapshots(id), version)
}

/// The key of a version in a folder of versions: the newest sorts first.
pub(crate) fn numbered(folder: &Path, version: u64) -> Path {
    folder.clone().join(format!("{:016x}.json", u64::MAX - version))
}

/// The version that the file name of a snapshot, or of a handler's version, stands for.
#[must_use]
pub fn version_of(file_name: &str) -> Option<u64> {
    let hex = file_name.strip_suffix(".json").filter(|hex| hex.len() == 16)?;
    u64::from_str_radix(hex, 16).ok().map(|reverse| u64::MAX - reverse)
}

/// The folder that indexes a session's children.
#[must_use]
pub fn children(id: &SessionId) -> Path {
    session(id).join("children")
}

/// The key of a name.
///
/// # Errors
/// [`Error::InvalidRefName`] if the name would not be safe as a key on every store.
pub fn reference(name: &str) -> Result<Path, Error> {
    if is_safe(name) {
        Ok(Path::from(format!("{REFS}/{name}")))
    } else {
        Err(Error::InvalidRefName { name: shortened(name) })
    }
}

/// The folder of the versions of a named component.
///
/// # Errors
/// [`Error::InvalidHandlerName`] if the name would not be safe as a key on every store.
pub fn handler(name: &str) -> Result<Path, Error> {
    if is_safe(name) {
        Ok(Path::from(format!("{HANDLERS}/{name}")))
    } else {
        Err(Error::InvalidHandlerName { name: shortened(name) })
    }
}

fn is_safe(name: &str) -> bool {
    let sign = |c: char| matches!(c, '.' | '_' | '-');
    !name.is_empty()
        && name.len() <= 128
        && name.chars().all(|c| c.is_ascii_alphanumeric() || sign(c))
        && !name.starts_with(sign)
        && !name.ends_with(sign)
}

fn shortened(name: &str) -> String {
    name.chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_keys() {
        let id: SessionId = "019abc12-3456-789a-bcde-f0123456789a".parse().unwrap();
        assert_eq!(
            snapshot(&id, 0).as_ref(),
            "sessions/year=2025/month=11/day=25/hour=17/019abc12-3456-789a-bcde-f0123456789a/snapshots/ffffffffffffffff.json"
        );
        assert!(snapshot(&id, 10) < snapshot(&id, 9));
        assert_eq!(version_of("fffffffffffffff5.json"), Some(10));
        assert_eq!(version_of("5.json"), None);
        assert_eq!(
            object(&Digest::of(b"")).as_ref(),
            "objects/sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn names_are_safe_keys() {
        assert_eq!(reference("code-review.2").unwrap().as_ref(), "refs/code-review.2");
        assert_eq!(
            numbered(&handler("triage").unwrap(), 1).as_ref(),
            "handlers/triage/fffffffffffffffe.json"
        );
        for name in ["", "-a", "a.", "a/b", "ä", "a b", ".."] {
            assert!(reference(name).is_err(), "{name}");
            assert!(handler(name).is_err(), "{name}");
        }
    }
}

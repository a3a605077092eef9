//! Keeps the cache directory from growing without end.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::cache::UNFINISHED;

/// Bytes that the cache may hold before its oldest entries go.
const MAX_BYTES: u64 = 2 << 30;

/// How long a file may be in the making: who began it is gone after that.
const MAX_UNFINISHED: Duration = Duration::from_hours(24);

/// Removes what nobody will finish, and the oldest files beyond the limit. What cannot be read or
/// removed stays. Code that is mapped by a running process goes on to work.
pub(super) fn trim(directory: &Path) {
    trim_to(directory, MAX_BYTES);
}

fn trim_to(directory: &Path, max_bytes: u64) {
    let mut files = files_of(directory);
    // The newest file's time stands for now: both come from the file system's clock.
    let Some(now) = files.iter().map(|(time, ..)| *time).max() else { return };
    files.retain(|(time, _, path)| {
        let unfinished = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()));
        if unfinished && now.duration_since(*time).is_ok_and(|age| age > MAX_UNFINISHED) {
            let _ = fs::remove_file(path);
        }
        !unfinished
    });
    files.sort_unstable_by_key(|(time, ..)| std::cmp::Reverse(*time));
    let mut total: u64 = 0;
    for (_, size, path) in files {
        total = total.saturating_add(size);
        if total > max_bytes {
            let _ = fs::remove_file(path);
        }
    }
}

/// Time of the last change, size and path of each file.
fn files_of(directory: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let describe = |entry: fs::DirEntry| {
        let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
        Some((metadata.modified().ok()?, metadata.len(), entry.path()))
    };
    entries.filter_map(|entry| describe(entry.ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn put(directory: &Path, name: &str, age_s: u64) {
        let path = directory.join(name);
        fs::write(&path, [0; 100]).unwrap();
        let epoch = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let time = epoch - Duration::from_secs(age_s);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn the_oldest_go_first_and_leftovers_after_a_day() {
        let home = tempfile::tempdir().unwrap();
        put(home.path(), "new", 0);
        put(home.path(), "older", 10);
        put(home.path(), "oldest", 20);
        put(home.path(), ".new-a", 90_000);
        put(home.path(), ".new-b", 60);
        trim_to(home.path(), 200);
        let mut names: Vec<_> = fs::read_dir(home.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [".new-b", "new", "older"]);
    }
}

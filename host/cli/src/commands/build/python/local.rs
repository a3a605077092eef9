//! The modules beside a script that it imports, and those that they import in turn.
//!
//! Only names at the beginning of lines are looked at: which statements count is found out by Python
//! itself, later; what is taken along here in vain does no harm.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The longest file that is taken along as data of a package, in bytes.
const LARGEST_FILE: u64 = 1024 * 1024;

/// What holds no modules of a handler's.
const NEVER: [&str; 3] = ["__pycache__", "node_modules", "target"];

/// Copies them from `beside` to `to`. Returns the first parts of all names that are imported.
///
/// # Errors
/// If a file cannot be read or written.
pub fn copy(script: &str, beside: &Path, to: &Path) -> io::Result<BTreeSet<String>> {
    let mut known = BTreeSet::new();
    let mut open: Vec<String> = imported(script).map(str::to_owned).collect();
    while let Some(name) = open.pop() {
        if !known.insert(name.clone()) {
            continue;
        }
        for file in files_of(beside, &name)? {
            let below = file.strip_prefix(beside).map_err(io::Error::other)?;
            let target = to.join(below);
            fs::create_dir_all(target.parent().unwrap_or(to))?;
            fs::copy(&file, &target)?;
            if file.extension().is_some_and(|extension| extension == "py") {
                let text = String::from_utf8_lossy(&fs::read(&file)?).into_owned();
                open.extend(imported(&text).map(str::to_owned));
            }
        }
    }
    Ok(known)
}

/// The files of a module or package.
fn files_of(beside: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let module = beside.join(format!("{name}.py"));
    if module.is_file() {
        return Ok(vec![module]);
    }
    let mut files = Vec::new();
    walk(&beside.join(name), &mut files)?;
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir())
        || folder.join("pyvenv.cfg").exists()
    {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || NEVER.contains(&name.as_ref()) {
            continue;
        }
        let path = entry.path();
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => walk(&path, files)?,
            Ok(metadata) if metadata.is_file() && metadata.len() <= LARGEST_FILE => {
                files.push(path);
            }
            _ => {}
        }
    }
    Ok(())
}

/// First parts of the names that lines of a text import. What begins with a dot belongs to a package
/// that is taken along whole.
fn imported(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let line = line.trim_start();
        let (list, whole) = match (line.strip_prefix("import "), line.strip_prefix("from ")) {
            (Some(list), _) => (list, true),
            (None, Some(module)) => (module, false),
            (None, None) => ("", false),
        };
        let names = list.split(',').take(if whole { usize::MAX } else { 1 });
        names.filter_map(|name| {
            let end = |letter: char| !(letter.is_alphanumeric() || letter == '_');
            name.trim_start().split(end).next().filter(|first| !first.is_empty())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_wherever_they_are_imported() {
        let text = "import os, tools.web as web\nfrom prompts import (\n  system,\n)\n\
                    def late():\n    import helper; x = 1\nfrom . import near\nimportant = 1\n";
        let names: Vec<&str> = imported(text).collect();
        assert_eq!(names, ["os", "tools", "prompts", "helper"]);
    }

    #[test]
    fn what_they_import_in_turn_is_taken_along() {
        let folder = tempfile::tempdir().unwrap();
        let (beside, to) = (folder.path().join("a"), folder.path().join("b"));
        for (path, text) in [
            ("tools/__init__.py", "from . import web"),
            ("tools/web.py", "import helper"),
            ("tools/prompt.txt", "Be brief."),
            ("tools/.git/config", ""),
            ("helper.py", "import tools"),
            ("other.py", ""),
            ("json/pyvenv.cfg", ""),
        ] {
            let path = beside.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let known = copy("import tools\nimport json\n", &beside, &to).unwrap();
        assert_eq!(known, ["helper", "json", "tools"].map(str::to_owned).into());
        let mut files = Vec::new();
        walk(&to, &mut files).unwrap();
        let mut files: Vec<_> = files.iter().map(|file| file.strip_prefix(&to).unwrap()).collect();
        files.sort();
        let expected = ["helper.py", "tools/__init__.py", "tools/prompt.txt", "tools/web.py"];
        assert_eq!(files, expected.map(Path::new));
    }
}

//! Where componentize-js and esbuild are: in the project's packages, or in a folder that this program
//! makes for the user, once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::commands::build::source::Source;
use crate::commands::build::{file, tool};
use crate::context::tools_dir;
use crate::error::Error;
use crate::output::note;

/// The version that is installed.
const VERSION: &str = "0.23.0";

/// The versions that do.
const SERIES: &str = "0.23.";

const PACKAGE: &str = "node_modules/@bytecodealliance/componentize-js/package.json";

/// What is installed, and the digests of all of it.
const FILES: [(&str, &str); 4] = [
    ("package.json", include_str!("tools/package.json")),
    ("package-lock.json", include_str!("tools/package-lock.json")),
    ("jco/package.json", include_str!("tools/jco/package.json")),
    ("jco/index.js", include_str!("tools/jco/index.js")),
];

/// What is missing where Node or npm cannot be run.
pub const NO_NODE: &str = "install Node 20.11 or later, with npm: https://nodejs.org";

/// Finds the folder whose `node_modules` has them, or makes it.
///
/// # Errors
/// If they are nowhere and cannot be installed.
pub fn find(source: &Source) -> Result<PathBuf, Error> {
    let path = fs::canonicalize(&source.path).map_err(|error| file("read", &source.path, error))?;
    let of_project = path.ancestors().skip(1).find(|folder| {
        version(folder).is_some_and(|version| version.starts_with(SERIES))
            && folder.join("node_modules/esbuild").is_dir()
    });
    match of_project {
        Some(folder) => Ok(folder.to_owned()),
        None => own(source),
    }
}

/// The version of componentize-js that is installed in a folder.
fn version(folder: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Package {
        version: String,
    }
    let text = fs::read(folder.join(PACKAGE)).ok()?;
    serde_json::from_slice(&text).ok().map(|package: Package| package.version)
}

/// The user's own, which is made if it is not there.
fn own(source: &Source) -> Result<PathBuf, Error> {
    let tools = tools_dir()?;
    fs::create_dir_all(&tools).map_err(|error| file("make", &tools, error))?;
    let lock = tools.join("lock");
    let held = File::create(&lock).and_then(|held| held.lock().map(|()| held));
    let _held = held.map_err(|error| file("lock", &lock, error))?;
    let folder = tools.join(format!("componentize-js-{VERSION}"));
    let done = folder.join("done");
    let [_, (_, wanted), ..] = FILES;
    if fs::read_to_string(&done).ok().as_deref() != Some(wanted) {
        install(source, &folder)?;
        fs::write(&done, wanted).map_err(|error| file("write", &done, error))?;
    }
    Ok(folder)
}

fn install(source: &Source, folder: &Path) -> Result<(), Error> {
    note(&format!(
        "installing componentize-js {VERSION} and esbuild from npm into {} (90 MB), once",
        folder.display()
    ));
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(file("remove", folder, error));
        }
        _ => {}
    }
    for (path, text) in FILES {
        super::lay_out(folder, path, text)?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    tool::run(source, npm.current_dir(folder), NO_NODE).map(drop)
}

//! Packages that others have written: those of a requirements file, or of a virtual environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::toolchain::Toolchain;
use crate::commands::build::source::Source;
use crate::commands::build::{file, tool};
use crate::error::Error;
use crate::output::note;

/// Has pip install what `requirements` names into `folder`.
///
/// # Errors
/// If there is no such file, or pip fails; it says why itself.
pub fn install(
    source: &Source,
    toolchain: &Toolchain,
    requirements: &Path,
    folder: &Path,
) -> Result<(), Error> {
    fs::metadata(requirements).map_err(|error| file("read", requirements, error))?;
    note(&format!("installing the packages of {}", requirements.display()));
    let mut pip = Command::new(&toolchain.python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]);
    pip.arg("--target").arg(folder).arg("--requirement").arg(requirements);
    let missing = "install Python with pip, or give a --venv that has the packages";
    tool::run(source, &mut pip, missing).map(drop)
}

/// The folder of a virtual environment's packages.
///
/// # Errors
/// If it is none.
pub fn of_venv(source: &Source, venv: &Path) -> Result<PathBuf, Error> {
    let lib = venv.join("lib");
    let versions = fs::read_dir(&lib).map_err(|error| file("read", &lib, error))?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages")))
        .filter(|folder| folder.is_dir())
        .collect();
    found.sort();
    found.pop().ok_or_else(|| {
        let reason = format!("`{}` is no virtual environment of Python", venv.display());
        let hint = "make one: `python3 -m venv FOLDER`, then `FOLDER/bin/pip install …`";
        tool::failed(source, reason, Some(hint.to_owned()))
    })
}

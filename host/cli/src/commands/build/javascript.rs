//! A component of a JavaScript or TypeScript module: esbuild makes one module of it, all that it
//! imports and the SDK, and componentize-js puts that into an engine that is initialised with it.
//!
//! The same sources give the same bytes, in any folder: the engine is initialised without time and
//! chance, and with names of its own for the folders of this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use tempfile::TempDir;

use super::source::Source;
use super::{Built, file, tool};
use crate::error::Error;
use crate::output::note;

mod frozen;
pub mod initialize;
mod tools;

include!(concat!(env!("OUT_DIR"), "/embedded_javascript.rs"));

/// What runs componentize-js.
const DRIVER: &str = include_str!("javascript/driver.js");

/// What the driver is told; described there.
#[derive(Serialize)]
struct Plan<'a> {
    tools: &'a Path,
    source: &'a Path,
    sdk: &'a Path,
    wit: &'a Path,
    work: &'a Path,
    wizer: &'a Path,
    output: &'a Path,
}

/// The SDK's files: paths, and what they hold.
pub fn sdk() -> impl Iterator<Item = (&'static str, &'static str)> {
    SDK.iter().copied()
}

/// Builds a module.
///
/// # Errors
/// If it is none, imports what cannot be had, or the toolchain is missing.
pub fn build(source: &Source) -> Result<Built, Error> {
    let tools = tools::find(source)?;
    let temporary = TempDir::with_prefix("pugmark-build-")
        .map_err(|error| file("make", &std::env::temp_dir(), error))?;
    let read = |error| file("read", &source.path, error);
    let folder = fs::canonicalize(temporary.path()).map_err(read)?;
    for (path, text) in sdk() {
        lay_out(&folder, &format!("sdk/{path}"), text)?;
    }
    for (path, text) in WIT {
        lay_out(&folder, &format!("wit/{path}"), text)?;
    }
    lay_out(&folder, "driver.mjs", DRIVER)?;
    let work = folder.join("work");
    fs::create_dir(&work).map_err(|error| file("make", &work, error))?;
    let wizer = initializer(&folder, &tools, &work)?;
    let output = folder.join("made.wasm");
    let plan = Plan {
        tools: &tools,
        source: &fs::canonicalize(&source.path).map_err(read)?,
        sdk: &folder.join("sdk"),
        wit: &folder.join("wit"),
        work: &work,
        wizer: &wizer,
        output: &output,
    };
    let plan = serde_json::to_string(&plan).map_err(|source| Error::Json { source })?;
    lay_out(&folder, "plan.json", &plan)?;
    note("building with componentize-js, which takes some seconds");
    let mut node = Command::new("node");
    node.arg(folder.join("driver.mjs")).arg(folder.join("plan.json"));
    node.current_dir(&work).env("TMPDIR", &work).env_remove("NODE_OPTIONS");
    tool::run(source, &mut node, tools::NO_NODE)?;
    let bytes = fs::read(&output).map_err(|error| file("read", &output, error))?;
    Ok(Built { name: source.stem(), bytes })
}

/// A program to be run in place of wizer: this one, which runs wizer in turn.
fn initializer(folder: &Path, tools: &Path, work: &Path) -> Result<PathBuf, Error> {
    let this =
        std::env::current_exe().map_err(|error| file("find", Path::new("pugmark"), error))?;
    let words = [&*this, Path::new("initialize-javascript"), tools, work];
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let command = shell_words::join(words.iter().map(AsRef::as_ref));
    let path = folder.join("wizer");
    lay_out(folder, "wizer", &format!("#!/bin/sh\nexec {command} \"$@\"\n"))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .map_err(|error| file("write", &path, error))?;
    Ok(path)
}

/// Writes a file at a relative path below `folder`.
fn lay_out(folder: &Path, path: &str, text: &str) -> Result<(), Error> {
    let path = folder.join(path);
    let parent = path.parent().unwrap_or(folder);
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
    written.map_err(|error| file("write", &path, error))
}

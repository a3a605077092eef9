//! A component of a Cargo package: of its library, which exports a handler, or else of its program,
//! which reads the log from its standard input.
//!
//! The profile `release` of the package is used as it is, but that names and paths of this machine
//! are left out: the same sources and the same compiler give the same bytes in any folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde::Deserialize;

use super::source::Source;
use super::{Built, file, tool};
use crate::error::Error;
use crate::output::note;
use toolchain::Toolchain;

mod toolchain;

/// What holds for Rust only.
#[derive(Args)]
pub struct Options {
    /// Rust: build for this target [default: wasm32-unknown-unknown for a library, wasm32-wasip2 for
    /// a program]
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
}

/// What `cargo metadata` says, as far as it matters.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    default_run: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    crate_types: Vec<String>,
    kind: Vec<String>,
}

/// One of the messages of `cargo --message-format=json`.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// What of a package is built.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Library,
    Program(String),
}

/// What cargo is missing where it cannot be run.
const NO_CARGO: &str = "install Rust 1.95 or later: https://rustup.rs";

/// Builds a package.
///
/// # Errors
/// If it does not compile, or the toolchain is missing.
pub fn build(source: &Source, options: &Options) -> Result<Built, Error> {
    let manifest =
        std::fs::canonicalize(&source.path).map_err(|error| file("read", &source.path, error))?;
    let metadata = metadata(source, &manifest)?;
    let root = &metadata.workspace_root;
    let package = metadata.packages.iter().find(|package| package.manifest_path == manifest);
    let package = package.ok_or_else(|| {
        let names: Vec<&str> = metadata.packages.iter().map(|other| other.name.as_str()).collect();
        let hint = format!("give the folder of one of its packages: {}", names.join(", "));
        tool::failed(source, "it is a workspace, and no package", Some(hint))
    })?;
    let part = part_of(source, package)?;
    let toolchain = Toolchain::find(source, &part, options.target.as_deref())?;
    let mut cargo = Command::new("cargo");
    cargo.args(["rustc", "--release", "--message-format=json-render-diagnostics"]);
    cargo.arg("--manifest-path").arg(&manifest);
    match &part {
        Part::Library => cargo.args(["--lib", "--crate-type", "cdylib"]),
        Part::Program(name) => cargo.args(["--bin", name]),
    };
    // Names hold what differs from one build to the next, and panicking never unwinds here.
    cargo.args(["--config", "profile.release.strip=true"]);
    cargo.args(["--config", "profile.release.panic='abort'"]);
    toolchain.apply(&mut cargo, &part, &remapped(root));
    let messages = tool::run(source, &mut cargo, NO_CARGO)?;
    let artifact = artifact(&messages, &manifest).ok_or_else(|| {
        tool::failed(source, "cargo says nothing of a .wasm file that it made", None)
    })?;
    let bytes = std::fs::read(&artifact).map_err(|error| file("read", &artifact, error))?;
    Ok(Built { name: package.name.clone(), bytes })
}

fn metadata(source: &Source, manifest: &Path) -> Result<Metadata, Error> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
    let text = tool::run(source, cargo.arg(manifest), NO_CARGO)?;
    serde_json::from_slice(&text).map_err(|error| {
        tool::failed(source, format!("`cargo metadata` cannot be understood: {error}"), None)
    })
}

/// A library that is made to be loaded comes first, then a program, then any other library.
fn part_of(source: &Source, package: &Package) -> Result<Part, Error> {
    let has = |target: &&Target, kind: &str| target.kind.iter().any(|of| of == kind);
    let programs: Vec<&Target> =
        package.targets.iter().filter(|target| has(target, "bin")).collect();
    let loadable =
        package.targets.iter().any(|target| target.crate_types.iter().any(|kind| kind == "cdylib"));
    let library = package.targets.iter().any(|target| has(&target, "lib"));
    match (programs.as_slice(), &package.default_run) {
        _ if loadable => Ok(Part::Library),
        (_, Some(name)) => Ok(Part::Program(name.clone())),
        ([program], None) => Ok(Part::Program(program.name.clone())),
        ([], None) if library => Ok(Part::Library),
        ([], None) => Err(tool::failed(source, "it has neither a library nor a program", None)),
        _ => {
            let hint = "name one in Cargo.toml: `default-run = \"…\"` below `[package]`";
            Err(tool::failed(source, "it has several programs", Some(hint.to_owned())))
        }
    }
}

/// Folders of this machine whose names would be in the component, and what is there instead.
fn remapped(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    // Of several that fit, the compiler takes the last.
    let mut folders: Vec<_> = cargo.into_iter().map(|folder| (folder, "/cargo")).collect();
    folders.push((root.to_owned(), "/src"));
    folders
}

/// The file that cargo says it made of the package.
fn artifact(messages: &[u8], manifest: &Path) -> Option<PathBuf> {
    let lines = messages.split(|byte| *byte == b'\n');
    let made = lines.filter_map(|line| serde_json::from_slice::<Message>(line).ok());
    let own = made.filter(|message| {
        message.reason == "compiler-artifact" && message.manifest_path == manifest
    });
    let mut files: Vec<PathBuf> = own.flat_map(|message| message.filenames).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    files.pop()
}

#[cfg(test)]
mod tests {
    use super::super::source::Language;
    use super::*;

    fn part(targets: &str) -> Result<Part, Error> {
        let text = format!(r#"{{"name":"a","manifest_path":"/a/Cargo.toml","targets":{targets}}}"#);
        let source = Source { path: "/a/Cargo.toml".into(), language: Language::Rust };
        part_of(&source, &serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn a_library_that_can_be_loaded_comes_first() {
        let cdylib = r#"{"name":"a","kind":["cdylib","rlib"],"crate_types":["cdylib","rlib"]}"#;
        let lib = r#"{"name":"a","kind":["lib"],"crate_types":["lib"]}"#;
        let bin = r#"{"name":"b","kind":["bin"],"crate_types":["bin"]}"#;
        assert_eq!(part(&format!("[{cdylib},{bin}]")).unwrap(), Part::Library);
        assert_eq!(part(&format!("[{lib},{bin}]")).unwrap(), Part::Program("b".into()));
        assert_eq!(part(&format!("[{lib}]")).unwrap(), Part::Library);
        assert!(part(&format!("[{bin},{bin}]")).is_err());
        assert!(part("[]").is_err());
    }

    #[test]
    fn finds_what_cargo_made() {
        let messages = br#"{"reason":"compiler-artifact","manifest_path":"/dep/Cargo.toml","filenames":["/t/dep.wasm"]}
{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","filenames":["/t/a.wasm","/t/a.rlib"]}
{"reason":"build-finished","success":true}
"#;
        let found = artifact(messages, Path::new("/a/Cargo.toml"));
        assert_eq!(found, Some(PathBuf::from("/t/a.wasm")));
    }
}

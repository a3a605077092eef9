pub mod javascript;
mod python;
mod rust;
mod source;
mod tool;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pugmark_log::Digest;
use pugmark_runtime::sandbox::{Component, Sandbox, World};
use serde::Serialize;

use crate::error::Error;
use crate::handlers;
use crate::output::{escape_line, human_size, is_json, to_json, to_stdout};
use source::{Language, Source};

/// Make a handler's source one component: a .wasm file that runs in the sandbox
///
/// Takes a Cargo package, a Python script, a JavaScript module, or WebAssembly that others have
/// built. Of a folder, what it is is found out: Cargo.toml, handler.py, or handler.js or handler.ts.
/// Prints the component's digest, which `run` records with every step that it makes, its size and
/// its file.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark build\n  \
    pugmark build agent.py -o agent.wasm\n  \
    pugmark build target/wasm32-wasip1/release/agent.wasm -o agent.wasm")]
pub struct Build {
    /// What to build: a file, or a folder
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,

    /// Where the component goes [default: NAME.wasm in this folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    rust: rust::Options,

    #[command(flatten)]
    python: python::Options,
}

/// A component that was built, as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    path: &'a str,
    digest: Digest,
    size: u64,
    world: World,
    language: &'static str,
}

/// What a language's toolchain made: a component, or a core module that can be made one.
pub struct Built {
    /// What the handler is called where the user says nothing else; names the file.
    pub name: String,
    /// The WebAssembly.
    pub bytes: Vec<u8>,
}

impl Build {
    pub fn run(self) -> Result<ExitCode, Error> {
        let source = Source::find(&self.path)?;
        let built = self.build(&source)?;
        let output = self.output_for(&source, &built)?;
        let component = load(&source, built)?;
        let bytes = component.bytes().map_err(|error| unusable(&source, error))?;
        write(&output, &bytes)?;
        let path = output.display().to_string();
        let (digest, size) = (component.digest(), bytes.len() as u64);
        if is_json() {
            let (world, language) = (component.world(), source.language.name());
            to_json(&View { path: &path, digest, size, world, language })?;
        } else {
            let path = escape_line(&path);
            to_stdout(|out| writeln!(out, "{digest}  {:>10}  {path}", human_size(size)))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Has the language's toolchain build it.
    fn build(&self, source: &Source) -> Result<Built, Error> {
        match source.language {
            Language::Rust => rust::build(source, &self.rust),
            Language::WebAssembly => {
                let bytes =
                    fs::read(&source.path).map_err(|error| file("read", &source.path, error))?;
                Ok(Built { name: source.stem(), bytes })
            }
            Language::Python => python::build(source, &self.python),
            Language::JavaScript => javascript::build(source),
        }
    }

    fn output_for(&self, source: &Source, built: &Built) -> Result<PathBuf, Error> {
        let output = match &self.output {
            Some(output) => return Ok(output.clone()),
            None => PathBuf::from(format!("{}.wasm", built.name)),
        };
        let same = fs::canonicalize(&output).ok() == fs::canonicalize(&source.path).ok();
        if output.exists() && same {
            let message = format!("`{}` would take the place of its source", output.display());
            return Err(Error::invalid(message, "say where the component goes with -o FILE"));
        }
        Ok(output)
    }
}

/// Has the sandbox take what was built, as `run` would: it says what is wrong, and compiled code is
/// at hand when it is first run.
fn load(source: &Source, built: Built) -> Result<Component, Error> {
    Sandbox::new(handlers::settings())
        .and_then(|sandbox| sandbox.load_bytes(&built.name, built.bytes.into()))
        .map_err(|error| unusable(source, error))
}

fn unusable(source: &Source, error: pugmark_runtime::sandbox::LoadError) -> Error {
    Error::Load { path: source.path.display().to_string(), source: error }
}

/// Writes a file whole, or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let write = || {
        let mut file = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error).map(drop)
    };
    write().map_err(|error| file("write", path, error))
}

fn file(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::File { action, path: path.display().to_string(), source }
}

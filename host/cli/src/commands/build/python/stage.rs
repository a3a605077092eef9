//! The folder that a component is built in, and what componentize-py is to do with it.
//!
//! Folders given with `-p` are `/0`, `/1` and so on to the Python that runs while building: the stage
//! itself, the SDK, and perhaps the packages of a virtual environment.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use tempfile::TempDir;

use super::local;
use crate::commands::build::file;
use crate::commands::build::source::Source;
use crate::error::Error;

include!(concat!(env!("OUT_DIR"), "/embedded_python.rs"));

/// The world of scripts that may ask by HTTP: whether they do is not known before they are run.
const ASKING: &str = "world asking { include command; import wasi:http/outgoing-handler@0.2.0; }\n";

/// What a script imports that may ask by HTTP.
const CLIENTS: [&str; 4] = ["http", "requests", "urllib", "urllib3"];

/// What the code that runs in a component calls interfaces that would else have the same name.
const NAMES: [&str; 2] = ["pugmark:handler/types@0.1.0=types", "wasi:http/types@0.2.0=http_types"];

/// What is componentized: it builds when it is imported.
const ENTRY: &str = "pugmark_component.entry";

/// The stage.
pub struct Stage {
    folder: TempDir,
    /// What tracebacks call the script.
    script: String,
    /// Where packages are found besides those that are installed for this build.
    packages: Option<PathBuf>,
    /// Whether the component may ask by HTTP.
    asks: bool,
}

/// What the code that runs while building is told.
#[derive(Serialize)]
struct Plan<'a> {
    script: &'a str,
    source: &'a str,
    report: &'a str,
    http: bool,
    roots: Vec<Root<'a>>,
}

/// A folder that modules are found in.
#[derive(Serialize)]
struct Root<'a> {
    folder: &'a str,
    /// What paths in tracebacks begin with.
    label: &'a str,
    /// Whether all of it is kept, or only what something is imported of.
    whole: bool,
    /// Whether it is the script's own.
    local: bool,
}

impl Stage {
    /// Lays out the SDK, the script and the modules beside it.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn new(source: &Source) -> Result<Self, Error> {
        let text = fs::read(&source.path).map_err(|error| file("read", &source.path, error))?;
        let folder = TempDir::with_prefix("pugmark-build-")
            .map_err(|error| file("make", &std::env::temp_dir(), error))?;
        let script = shown(&source.path);
        let mut stage = Self { folder, script, packages: None, asks: false };
        let beside = match source.path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let lay_out = || {
            for (path, text) in SDK {
                stage.write(&format!("sdk/{path}"), text.as_bytes())?;
            }
            for (path, text) in WIT {
                stage.write(&format!("wit/{path}"), text.as_bytes())?;
            }
            // componentize-py takes the packages of an environment along: of this one, none.
            for folder in ["local", "site", "none/lib/site-packages"] {
                fs::create_dir_all(stage.path(folder))?;
            }
            stage.write("wit/asking.wit", ASKING.as_bytes())?;
            stage.write("script.py", &text)?;
            local::copy(&String::from_utf8_lossy(&text), beside, &stage.path("local"))
        };
        let imported =
            lay_out().map_err(|error| file("copy what is beside", &source.path, error))?;
        stage.asks = CLIENTS.iter().any(|client| imported.contains(*client));
        Ok(stage)
    }

    /// Where packages are to be installed. They may ask by HTTP.
    pub fn packages(&mut self) -> PathBuf {
        self.asks = true;
        self.path("site")
    }

    /// Has packages of another folder be found, too. They may ask by HTTP.
    pub fn add_packages(&mut self, folder: PathBuf) {
        self.asks = true;
        self.packages = Some(folder);
    }

    /// Writes down what is where.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn finish(&self) -> Result<(), Error> {
        let beside = self.script.rfind('/').map_or("", |at| &self.script[..=at]);
        let root = |folder, label, whole, local| Root { folder, label, whole, local };
        let mut roots = vec![
            root("/1", "pugmark-sdk/", true, false),
            root("/0/local", beside, true, true),
            root("/python", "python3.14/", true, false),
            root("/0/site", "site-packages/", true, false),
        ];
        if self.asks {
            // Before Python's own: it has an `ssl` that does without a library.
            let overlay = "/1/pugmark_component/overlay";
            roots.insert(0, root(overlay, "python3.14/", true, false));
        }
        if self.packages.is_some() {
            roots.push(root("/2", "site-packages/", false, false));
        }
        let plan = Plan {
            script: &self.script,
            source: "/0/script.py",
            report: "/0/report.json",
            http: self.asks,
            roots,
        };
        let written = serde_json::to_vec(&plan).map_err(io::Error::other);
        let written = written.and_then(|text| self.write("build.json", &text));
        written.map_err(|error| file("write", &self.path("build.json"), error))
    }

    /// Tells componentize-py what to do.
    pub fn apply(&self, command: &mut Command) {
        command.env("VIRTUAL_ENV", self.path("none"));
        command.arg("-d").arg(self.path("wit"));
        command.args(["-w", if self.asks { "asking" } else { "command" }]);
        for name in &NAMES[..if self.asks { 2 } else { 1 }] {
            command.args(["--import-interface-name", name]);
        }
        command.arg("componentize");
        command.arg("-p").arg(self.path("")).arg("-p").arg(self.path("sdk"));
        if let Some(packages) = &self.packages {
            command.arg("-p").arg(packages);
        }
        command.arg(ENTRY).arg("-o").arg(self.made());
    }

    /// Where the report is.
    pub fn report(&self) -> PathBuf {
        self.path("report.json")
    }

    /// Where the component is.
    pub fn made(&self) -> PathBuf {
        self.path("made.wasm")
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    fn write(&self, relative: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap_or(self.folder.path()))?;
        fs::write(path, bytes)
    }
}

/// What a script is called in tracebacks: as it was given, but that no folder of this machine gets
/// into the component.
fn shown(path: &Path) -> String {
    let relative: PathBuf =
        path.components().filter(|part| !matches!(part, Component::CurDir)).collect();
    let shown = if relative.is_absolute() {
        relative.file_name().map(PathBuf::from).unwrap_or_default()
    } else {
        relative
    };
    shown.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_called_as_they_were_given() {
        for (given, expected) in [
            ("agent.py", "agent.py"),
            ("./agent.py", "agent.py"),
            ("agents/./a.py", "agents/a.py"),
            ("../agents/a.py", "../agents/a.py"),
            ("/home/me/agents/a.py", "a.py"),
        ] {
            assert_eq!(shown(Path::new(given)), expected);
        }
    }

    #[test]
    fn the_sdk_is_here() {
        assert!(SDK.iter().any(|(path, _)| *path == "pugmark/__init__.py"));
        assert!(SDK.iter().any(|(path, _)| *path == "pugmark_component/entry.py"));
        assert!(WIT.iter().any(|(path, _)| *path == "handler.wit"));
    }
}

mod name;
mod sdk;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::commands::build::javascript;
use crate::error::Error;
use crate::output::{is_json, note, to_json, to_stdout};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// What ends the name of a template's file whose text names the handler.
const FILLED_IN: &str = ".tmpl";

/// Make a folder with a new handler: it works, and has a test and a README
///
/// Nothing is fetched. A Rust or JavaScript handler comes with the sources of the SDK that this
/// pugmark was built with, in `vendor/`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark new triage --lang rust\n  \
    pugmark new triage --lang python && cd triage && pugmark build")]
pub struct New {
    /// The handler's name, and the folder's: lower-case letters, digits, `-` and `_`
    #[arg(value_name = "NAME")]
    name: String,

    /// What it is written in
    #[arg(short, long, value_name = "LANGUAGE")]
    lang: Lang,
}

/// The languages that there is a template for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Lang {
    /// A library for wasm32-unknown-unknown: small, and quick to start
    Rust,
    /// A script, as a subprocess and as a component
    Python,
    /// A module, as a subprocess of Node and as a component
    #[value(name = "javascript")]
    JavaScript,
}

impl Lang {
    fn folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
        }
    }

    /// What to do with a new handler first.
    fn steps(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["cargo test", "pugmark build"],
            Self::Python => {
                &["pip install -r requirements.txt", "python -m unittest", "pugmark build"]
            }
            Self::JavaScript => &["npm install", "npm test", "pugmark build"],
        }
    }
}

/// A folder that was made, as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    path: &'a str,
    language: &'static str,
    files: Vec<&'a str>,
}

impl New {
    pub fn run(self) -> Result<ExitCode, Error> {
        name::check(&self.name)?;
        let files = files(&self.name, self.lang)?;
        let folder = Path::new(&self.name);
        match fs::create_dir(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let message = format!("`{}` exists already", self.name);
                return Err(Error::invalid(message, "give another name, or remove it first"));
            }
            made => made.map_err(|source| failed(folder, source))?,
        }
        if let Err((path, source)) = write(folder, &files) {
            // What is half there would only be in the way.
            let _ = fs::remove_dir_all(folder);
            return Err(failed(&folder.join(path), source));
        }
        if is_json() {
            let files = files.iter().map(|(path, _)| path.as_str()).collect();
            to_json(&View { path: &self.name, language: self.lang.folder(), files })?;
        } else {
            to_stdout(|out| writeln!(out, "{}", self.name))?;
            let steps = self.lang.steps().join("\n    ");
            note(&format!(
                "next:\n    cd {}\n    {steps}\nREADME.md goes on from there",
                self.name
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The files of a new handler: paths, and what they hold.
fn files(name: &str, lang: Lang) -> Result<Vec<(String, String)>, Error> {
    let mut files = Vec::new();
    for (path, text) in TEMPLATES {
        let Some(path) = path.strip_prefix(lang.folder()).and_then(|path| path.strip_prefix('/'))
        else {
            continue;
        };
        match path.strip_suffix(FILLED_IN) {
            Some(path) => files.push((path.to_owned(), text.replace("{{name}}", name))),
            None => files.push((path.to_owned(), (*text).to_owned())),
        }
    }
    match lang {
        Lang::Rust => files.extend(sdk::files(SDK)?),
        Lang::JavaScript => files.extend(
            javascript::sdk()
                .map(|(path, text)| (format!("vendor/pugmark/{path}"), text.to_owned())),
        ),
        Lang::Python => {}
    }
    Ok(files)
}

fn write<'a>(folder: &Path, files: &'a [(String, String)]) -> Result<(), (&'a str, io::Error)> {
    for (path, text) in files {
        let whole = folder.join(path);
        let parent = whole.parent().unwrap_or(folder);
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&whole, text));
        written.map_err(|error| (path.as_str(), error))?;
    }
    Ok(())
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::File { action: "write", path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_handler_a_test_and_a_readme() {
        for lang in Lang::value_variants() {
            let files = files("my-agent", *lang).unwrap();
            let of = |name: &str| {
                files.iter().find(|(path, _)| path == name).map(|(_, text)| text.as_str())
            };
            assert!(of("README.md").is_some_and(|text| text.starts_with("# my-agent\n")));
            assert!(of(".gitignore").is_some_and(|text| text.contains("/*.wasm")));
            let own = files.iter().filter(|(path, _)| !path.starts_with("vendor/"));
            assert!(own.clone().all(|(_, text)| !text.contains("{{")), "{lang:?}");
            assert!(own.clone().any(|(_, text)| text.contains("answers_an_input_once")));
            assert!(own.count() <= 6, "{lang:?}");
        }
    }
}

//! A component of a Python script: a Python interpreter, the SDK, the script and what it imports, in
//! the memory that it is left with when all of that has been imported.
//!
//! componentize-py makes it. What it runs meanwhile is `guest-sdk/python/pugmark_component`, which
//! this program holds and lays out in a folder; it says in a report how that went.

use std::io::{self, Read as _, Seek as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use serde::Deserialize;

use super::source::Source;
use super::{Built, file, tool};
use crate::error::Error;
use crate::output::note;
use stage::Stage;
use toolchain::Toolchain;

mod local;
mod packages;
mod stage;
mod toolchain;

/// What holds for Python only.
#[derive(Args)]
#[group(skip)]
pub struct Options {
    /// Python: include the packages that this file names, as `pip install -r` takes them
    #[arg(long, value_name = "FILE", conflicts_with = "venv")]
    requirements: Option<PathBuf>,

    /// Python: include what the script imports of the packages of this virtual environment
    #[arg(long, value_name = "FOLDER")]
    venv: Option<PathBuf>,
}

/// How the build went, as the code that runs in it says.
#[derive(Deserialize)]
struct Report {
    notes: Vec<String>,
    error: Option<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    reason: String,
    hint: String,
}

/// The lines of componentize-py's own words that an error ends with, where there is no report.
const LINES: usize = 20;

/// Builds a script.
///
/// # Errors
/// If it is no Python, imports what cannot be had, or the toolchain is missing.
pub fn build(source: &Source, options: &Options) -> Result<Built, Error> {
    let toolchain = Toolchain::find(source, options.venv.as_deref())?;
    let mut stage = Stage::new(source)?;
    if let Some(requirements) = &options.requirements {
        packages::install(source, &toolchain, requirements, &stage.packages())?;
    }
    if let Some(venv) = &options.venv {
        stage.add_packages(packages::of_venv(source, venv)?);
    }
    stage.finish()?;
    note("building with componentize-py, which takes some seconds");
    componentize(source, &toolchain, &stage)?;
    let made = stage.made();
    let bytes = std::fs::read(&made).map_err(|error| file("read", &made, error))?;
    Ok(Built { name: source.stem(), bytes })
}

fn componentize(source: &Source, toolchain: &Toolchain, stage: &Stage) -> Result<(), Error> {
    let mut command = Command::new(&toolchain.componentize);
    stage.apply(&mut command);
    let mut run = || {
        let mut said = tempfile::tempfile()?;
        let stderr = said.try_clone()?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let status = tool::wait(&mut command.spawn()?, tool::LOADING)?;
        said.rewind()?;
        let mut text = Vec::new();
        said.read_to_end(&mut text)?;
        Ok((status, text))
    };
    let (status, said) = run().map_err(|error: io::Error| {
        let program = toolchain.componentize.display();
        tool::failed(source, format!("`{program}` cannot be run: {error}"), None)
    })?;
    let Some(status) = status else {
        let seconds = tool::LOADING.as_secs();
        let reason =
            format!("what its modules do as they are loaded is not done after {seconds} s");
        return Err(tool::failed(source, reason, None));
    };
    let report = std::fs::read(stage.report()).ok();
    let report: Option<Report> = report.and_then(|text| serde_json::from_slice(&text).ok());
    match report {
        Some(Report { error: Some(Reason { reason, hint }), .. }) => {
            Err(tool::failed(source, reason, Some(hint).filter(|hint| !hint.is_empty())))
        }
        Some(report) if status.success() => {
            report.notes.iter().for_each(|text| note(text));
            Ok(())
        }
        _ => {
            let said = String::from_utf8_lossy(&said);
            let lines: Vec<&str> = said.lines().collect();
            let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
            let reason = format!("componentize-py failed ({status}): {}", end.trim());
            Err(tool::failed(source, reason, None))
        }
    }
}

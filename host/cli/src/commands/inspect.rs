use std::path::Path;
use std::process::ExitCode;

use bytes::Bytes;
use clap::Args;
use pugmark_log::Digest;
use pugmark_runtime::sandbox::{Access, Import, Producer, Report, World, report};
use serde::Serialize;

use super::block_on;
use crate::completion;
use crate::error::{Error, exit};
use crate::handlers;
use crate::open::Workspace;
use crate::output::{escape_line, human_size, is_json, to_json, to_stdout};
use crate::stored;
use crate::style::{Style, paint};

/// Show what a component is and asks for, without running it
///
/// Says how it would be called, which of its imports work in the sandbox, are there and deny every
/// call, or keep it from being loaded, and what its own sections say of the tools that made it. The
/// digest is the one that `run` records. The exit code is 12 if it is no handler.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark inspect agent.wasm\n  \
    pugmark inspect triage@2\n  \
    pugmark inspect agent.wasm --json | jq -r '.imports[] | select(.access != \"served\").name'")]
pub struct Inspect {
    /// A file, or `NAME[@VERSION]` or `sha256:…` of the bucket
    #[arg(value_name = "FILE", add = completion::handlers(true))]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: String,
}

/// What was found, as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    file: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<World>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    imports: &'a [Import],
    exports: &'a [String],
    producers: &'a [Producer],
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
}

impl Inspect {
    pub fn run(self, bucket: Option<&str>) -> Result<ExitCode, Error> {
        let bytes = self.bytes(bucket)?;
        let found = report(&self.file, bytes, &handlers::settings())
            .map_err(|source| Error::Load { path: self.file.clone(), source })?;
        if is_json() {
            to_json(&self.view(&found))?;
        } else {
            show(&found)?;
        }
        Ok(ExitCode::from(if found.world.is_some() { 0 } else { exit::HANDLER_UNUSABLE }))
    }

    fn bytes(&self, bucket: Option<&str>) -> Result<Bytes, Error> {
        let path = Path::new(&self.file);
        let is_path = path.components().count() != 1 || path.extension().is_some();
        if path.is_file() || is_path && !self.file.contains('@') {
            let read = std::fs::read(path).map(Bytes::from);
            let path = self.file.clone();
            return read.map_err(|source| Error::File { action: "read", path, source });
        }
        let workspace = Workspace::open(bucket)?;
        block_on(&workspace, stored::bytes(&workspace.bucket, &self.file))
    }

    fn view<'a>(&'a self, found: &'a Report) -> View<'a> {
        View {
            file: &self.file,
            kind: if found.is_module { "module" } else { "component" },
            world: found.world,
            digest: found.component.map(|(digest, _)| digest),
            size: found.component.map(|(_, size)| size),
            imports: &found.imports,
            exports: &found.exports,
            producers: &found.producers,
            problem: found.problem.as_deref(),
        }
    }
}

fn show(found: &Report) -> Result<(), Error> {
    let mut rows = Rows(Vec::new());
    let world = match found.world {
        Some(World::Typed) => "typed: called for each event, then for a decision",
        Some(World::Command) => "command: a program that reads the log from its standard input",
        None => "none: it is no handler",
    };
    rows.add("world", world);
    if let Some(problem) = &found.problem {
        rows.add("problem", escape_line(problem));
    }
    if let Some((digest, size)) = found.component {
        rows.add("digest", digest.to_string());
        rows.add("size", human_size(size));
    }
    if found.is_module {
        rows.add("made from", "a core module");
    }
    let width = found.imports.iter().map(|import| import.name.len()).max().unwrap_or(0);
    for Import { name, access } in &found.imports {
        let space = " ".repeat(width - name.len());
        rows.add("imports", format!("{}{space}  {}", escape_line(name), access_name(*access)));
    }
    found.exports.iter().for_each(|export| rows.add("exports", escape_line(export)));
    for Producer { role, name, version } in &found.producers {
        rows.add("producers", escape_line(format!("{role} {name} {version}").trim_end()));
    }
    to_stdout(|out| rows.0.iter().try_for_each(|row| writeln!(out, "{row}")))?;
    Ok(())
}

/// Lines with a heading each, which is said once where several follow each other.
struct Rows(Vec<String>);

impl Rows {
    fn add(&mut self, heading: &'static str, text: impl std::fmt::Display) {
        let label = paint(Style::Strong, heading);
        let said = self.0.iter().any(|row| row.starts_with(&label));
        let space = " ".repeat(11_usize.saturating_sub(heading.len()));
        let label = if said { " ".repeat(heading.len()) } else { label };
        self.0.push(format!("{label}{space}{text}"));
    }
}

fn access_name(access: Access) -> String {
    match access {
        Access::Served => "served".to_owned(),
        Access::AllowHttp => "served to hosts of `run --allow-http`".to_owned(),
        Access::Denied => paint(Style::Waiting, "denies every call"),
        Access::Refused => paint(Style::Removed, "refused"),
    }
}

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pugmark_log::{Digest, HandlerVersion, Timestamp};
use pugmark_runtime::sandbox::Sandbox;
use serde::Serialize;

use crate::completion;
use crate::error::Error;
use crate::handlers;
use crate::open::Workspace;
use crate::output::{human_size, is_json, note, to_json, to_json_lines, to_stdout};
use crate::stored::{Stored, Which, label};
use crate::style::{Style, paint};

/// List the handlers that are kept in the bucket, or add or remove one
///
/// A handler in the bucket is a component with a name. Each time another component gets the name,
/// that is the next version of it, and a version never changes. `pugmark start --handler NAME` pins a
/// session to the newest, and `pugmark run` then needs no handler: it runs the session's own, on
/// any machine that reaches the bucket.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  \
    pugmark handlers\n  \
    pugmark handlers add triage triage.wasm\n  \
    pugmark handlers rm triage@1\n  \
    pugmark start --handler triage && pugmark run")]
pub struct Handlers {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Put a component into the bucket, as the next version of a name
    Add {
        /// The name
        #[arg(value_name = "NAME", add = completion::handlers(false))]
        name: String,

        /// The component, or a core module that can be made one
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Remove a version of a name, or all of them; sessions that are pinned to one keep it
    Rm {
        /// The name and, after an `@`, the version [default: all of them]
        #[arg(value_name = "NAME[@VERSION]", add = completion::handlers(true))]
        handler: String,
    },
}

/// A version as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    name: &'a str,
    version: u64,
    digest: Digest,
    size: u64,
    created: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest: Option<bool>,
    /// Whether `add` made it: it does not if the newest is this component already.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<bool>,
}

impl<'a> View<'a> {
    fn of(found: &'a HandlerVersion) -> Self {
        let HandlerVersion { name, version, component, size, created } = found;
        let (version, digest, size, created) = (*version, *component, *size, *created);
        Self { name, version, digest, size, created, latest: None, added: None }
    }
}

impl Handlers {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        match self.action {
            None => list(&workspace).await,
            Some(Action::Add { name, file }) => add(&workspace, &name, file).await,
            Some(Action::Rm { handler }) => remove(&workspace, &handler).await,
        }
    }
}

async fn list(workspace: &Workspace) -> Result<(), Error> {
    let found = workspace.bucket.handlers().await?;
    let next = found.iter().skip(1).map(|next| next.name.as_str()).chain([""]);
    let latest: Vec<bool> = found.iter().zip(next).map(|(this, next)| this.name != next).collect();
    if is_json() {
        let views = found.iter().zip(latest);
        return to_json_lines(
            views.map(|(this, latest)| View { latest: Some(latest), ..View::of(this) }),
        );
    }
    let width = found.iter().map(|this| label(this).len()).max().unwrap_or(0);
    to_stdout(|out| {
        found.iter().zip(latest).try_for_each(|(this, latest)| {
            let (label, size) = (label(this), human_size(this.size));
            let space = " ".repeat(width - label.len());
            let label = paint(Style::Name, &label);
            let (digest, created) = (this.component, this.created);
            let latest = if latest { "  latest" } else { "" };
            writeln!(out, "{label}{space}  {digest}  {size:>10}  {created}{latest}")
        })
    })?;
    Ok(())
}

async fn add(workspace: &Workspace, name: &str, file: PathBuf) -> Result<(), Error> {
    let unusable = |source| Error::Load { path: file.display().to_string(), source };
    // A name that cannot be one is told before anything is compiled.
    workspace.bucket.latest_handler(name).await?;
    let sandbox = Sandbox::new(handlers::settings()).map_err(unusable)?;
    let component = sandbox.load_file(&file).map_err(unusable)?;
    let bytes = component.bytes().map_err(unusable)?;
    let size = bytes.len() as u64;
    let digest = workspace.bucket.put_object(bytes).await?;
    let (made, added) = workspace.bucket.add_handler(name, digest, size).await?;
    if is_json() {
        return to_json(&View { added: Some(added), ..View::of(&made) });
    }
    if !added {
        note(&format!("{} is this component already", label(&made)));
    }
    to_stdout(|out| writeln!(out, "{}  {digest}  {:>10}", label(&made), human_size(size)))?;
    Ok(())
}

async fn remove(workspace: &Workspace, text: &str) -> Result<(), Error> {
    let stored = Stored::parse(text)?;
    let found = stored.find(&workspace.bucket).await?;
    let version = (stored.which != Which::Own).then_some(found.version);
    let removed = workspace.bucket.remove_handler(&stored.name, version).await?;
    if is_json() {
        return to_json_lines(removed.iter().map(View::of));
    }
    for removed in &removed {
        note(&format!("removed {}", label(removed)));
    }
    Ok(())
}

use clap::Args;

use crate::commands::find_entry;
use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{escape_line, is_json, to_json, to_stdout};
use crate::view::EntryView;

/// Show what describes an object, without its body
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark stat 7b1be4ff\n  \
    pugmark stat -s code-review:3 7b1be4ff --json")]
pub struct Stat {
    /// The object's hash, or the beginning of it
    #[arg(value_name = "HASH", add = completion::hashes())]
    hash: String,

    /// The session and, after a colon, the version [default: the current session's newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]", add = completion::sessions())]
    session: Option<String>,
}

impl Stat {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        let entry = find_entry(&workspace, &snapshot, &self.hash).await?;
        if is_json() {
            return to_json(&EntryView::of(&entry, None));
        }
        let attributes = entry.attributes();
        let stored = if entry.data().is_some() { "inline" } else { "object" };
        to_stdout(|out| {
            writeln!(out, "hash              {}", entry.hash())?;
            writeln!(out, "size              {}", entry.size())?;
            writeln!(out, "stored            {stored}")?;
            let optional = [
                ("name", &attributes.name),
                ("content-type", &attributes.content_type),
                ("content-encoding", &attributes.content_encoding),
                ("schema-url", &attributes.schema_url),
            ];
            for (label, value) in optional {
                if let Some(value) = value {
                    writeln!(out, "{label:<16}  {}", escape_line(value))?;
                }
            }
            for (key, value) in &attributes.metadata {
                writeln!(out, "metadata          {}={}", escape_line(key), escape_line(value))?;
            }
            if let Some(origin) = entry.origin() {
                writeln!(out, "origin            {}:{}", origin.session, origin.version)?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

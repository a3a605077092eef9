use clap::Args;

use crate::commands::find_entry;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{escape_line, to_stdout};

/// Show what describes an object, without its body
#[derive(Args)]
pub struct Stat {
    /// The object's hash, or the beginning of it
    #[arg(value_name = "HASH")]
    hash: String,

    /// The session and, after a colon, the version [default: the current session's newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]")]
    session: Option<String>,
}

impl Stat {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        let entry = find_entry(&workspace, &snapshot, &self.hash).await?;
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

use clap::Args;
use pugmark_log::SessionId;
use serde::Serialize;

use crate::error::Error;
use crate::open::Workspace;
use crate::output::{is_json, to_json_lines, to_stdout};
use crate::style::{Style, paint};

/// List the names of sessions
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark refs\n  \
    pugmark refs --json | jq -r 'select(.name == \"code-review\").session'")]
pub struct Refs {}

/// A name as a JSON document.
#[derive(Serialize)]
pub struct View<'a> {
    /// The name.
    pub name: &'a str,
    /// The session that has it.
    pub session: SessionId,
}

impl Refs {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let refs = workspace.bucket.refs().await?;
        if is_json() {
            return to_json_lines(refs.iter().map(|(name, id)| View { name, session: *id }));
        }
        let width = refs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        to_stdout(|out| {
            refs.iter().try_for_each(|(name, session)| {
                let space = " ".repeat(width - name.len());
                writeln!(out, "{}{space}  {session}", paint(Style::Name, name))
            })
        })?;
        Ok(())
    }
}

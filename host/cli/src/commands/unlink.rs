use clap::Args;

use crate::commands::refs::View;
use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{is_json, to_json};

/// Drop a session's name; the session stays
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark unlink code-review")]
pub struct Unlink {
    /// The name
    #[arg(value_name = "NAME", add = completion::names())]
    name: String,
}

impl Unlink {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let session = workspace.bucket.find_ref(&self.name).await?;
        workspace.bucket.unlink(&self.name).await?;
        match session {
            Some(session) if is_json() => to_json(&View { name: &self.name, session }),
            _ => Ok(()),
        }
    }
}

use clap::Args;

use crate::commands::refs::View;
use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{is_json, to_json};

/// Name a session
///
/// The name then works wherever a session's id does. A name that is taken moves.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark link code-review\n  \
    pugmark link baseline -s 019a8c")]
pub struct Link {
    /// The name
    #[arg(value_name = "NAME")]
    name: String,

    /// The session to name [default: the current one]
    #[arg(short, long, value_name = "SESSION", add = completion::sessions())]
    session: Option<String>,
}

impl Link {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let session = workspace.session(self.session.as_deref()).await?;
        workspace.bucket.tip(&session, None).await?;
        workspace.bucket.link(&self.name, &session).await?;
        if is_json() {
            to_json(&View { name: &self.name, session })?;
        }
        Ok(())
    }
}

use clap::Args;

use crate::error::Error;
use crate::open::Workspace;

/// Name a session
///
/// The name then works wherever a session's id does. A name that is taken moves.
#[derive(Args)]
pub struct Link {
    /// The name
    #[arg(value_name = "NAME")]
    name: String,

    /// The session to name [default: the current one]
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
}

impl Link {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let session = workspace.session(self.session.as_deref()).await?;
        workspace.bucket.tip(&session, None).await?;
        Ok(workspace.bucket.link(&self.name, &session).await?)
    }
}

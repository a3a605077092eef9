use clap::Args;

use crate::error::Error;
use crate::open::Workspace;
use crate::output::to_stdout;

/// Make a session the current one
///
/// Prints the session's id.
#[derive(Args)]
pub struct Switch {
    /// The session's id, a unique beginning or end of it, or its name
    #[arg(value_name = "SESSION")]
    session: String,
}

impl Switch {
    pub async fn run(self, mut workspace: Workspace) -> Result<(), Error> {
        let session = workspace.find_session(&self.session).await?;
        workspace.bucket.tip(&session, None).await?;
        workspace.switch_to(session)?;
        to_stdout(|out| writeln!(out, "{session}"))?;
        Ok(())
    }
}

use clap::Args;

use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{is_json, to_json, to_stdout};
use crate::view::SessionOnly;

/// Make a session the current one
///
/// Prints the session's id.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark switch 019a8c\n  \
    pugmark switch code-review")]
pub struct Switch {
    /// The session's id, a unique beginning or end of it, or its name
    #[arg(value_name = "SESSION", add = completion::sessions())]
    session: String,
}

impl Switch {
    pub async fn run(self, mut workspace: Workspace) -> Result<(), Error> {
        let session = workspace.find_session(&self.session).await?;
        workspace.bucket.tip(&session, None).await?;
        workspace.switch_to(session)?;
        if is_json() {
            return to_json(&SessionOnly { session });
        }
        to_stdout(|out| writeln!(out, "{session}"))?;
        Ok(())
    }
}

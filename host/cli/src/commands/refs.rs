use clap::Args;

use crate::error::Error;
use crate::open::Workspace;
use crate::output::to_stdout;

/// List the names of sessions
#[derive(Args)]
pub struct Refs {}

impl Refs {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let refs = workspace.bucket.refs().await?;
        let width = refs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        to_stdout(|out| {
            refs.iter().try_for_each(|(name, session)| writeln!(out, "{name:<width$}  {session}"))
        })?;
        Ok(())
    }
}

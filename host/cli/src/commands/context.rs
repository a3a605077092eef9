use clap::Args;

use crate::commands::tree::state_name;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::to_stdout;

/// Show the current bucket, session and snapshot
#[derive(Args)]
pub struct ShowContext {}

impl ShowContext {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let bucket = &workspace.context.bucket;
        let Some(session) = workspace.context.session else {
            to_stdout(|out| writeln!(out, "bucket    {bucket}\nsession   none"))?;
            return Ok(());
        };
        let tip = workspace.bucket.tip(&session, None).await?;
        to_stdout(|out| {
            writeln!(out, "bucket    {bucket}")?;
            writeln!(out, "session   {session}")?;
            let (version, count) = (tip.version, tip.log.count());
            let events = if count == 1 { "event" } else { "events" };
            writeln!(out, "snapshot  {version}  {count} {events}, {}", state_name(&tip))
        })?;
        Ok(())
    }
}

use std::io::Write;

use clap::Args;
use futures::TryStreamExt as _;
use pugmark_log::Entry;

use crate::error::Error;
use crate::open::Workspace;
use crate::output::{escape_line, human_size, to_stdout};

/// List the objects at the current snapshot
///
/// A line for each event of the log, oldest first: the body's hash, its length, its media type and
/// its name.
#[derive(Args)]
pub struct Objects {
    /// Only the newest ones
    #[arg(short = 'n', long, value_name = "COUNT")]
    limit: Option<u64>,

    /// The session and, after a colon, the version [default: the current session's newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]")]
    session: Option<String>,
}

impl Objects {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        let count = snapshot.log.count();
        let from = count.saturating_sub(self.limit.unwrap_or(count));
        let mut chunks =
            workspace.bucket.entries(&snapshot.log, from..count, None).try_ready_chunks(256);
        loop {
            let chunk = match chunks.try_next().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(()),
                Err(error) => return Err(error.1.into()),
            };
            to_stdout(|out| chunk.iter().try_for_each(|entry| line(out, "", entry)))?;
        }
    }
}

/// A line of a listing of events.
pub fn line(out: &mut dyn Write, indent: &str, entry: &Entry) -> std::io::Result<()> {
    let attributes = entry.attributes();
    let size = human_size(entry.size());
    let content_type = attributes.content_type.as_deref().unwrap_or("-");
    write!(out, "{indent}{}  {size:>10}  {}", entry.hash(), escape_line(content_type))?;
    match &attributes.name {
        Some(name) => writeln!(out, "  {}", escape_line(name)),
        None => writeln!(out),
    }
}

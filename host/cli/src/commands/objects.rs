use std::io::Write;

use clap::Args;
use futures::TryStreamExt as _;
use pugmark_log::Entry;

use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{escape_line, human_size, is_json, to_json_lines, to_stdout};
use crate::pager;
use crate::style::{Style, paint};
use crate::view::EntryView;

/// How many events are written at a time.
const CHUNK: usize = 256;

/// List the objects at the current snapshot
///
/// A line for each event of the log, oldest first: the body's hash, its length, its media type and
/// its name.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark objects\n  \
    pugmark objects -n 10\n  \
    pugmark objects -s code-review:3\n  \
    pugmark objects --json | jq -r 'select(.name == \"report.json\").hash'")]
pub struct Objects {
    /// Only the newest ones
    #[arg(short = 'n', long, value_name = "COUNT")]
    limit: Option<u64>,

    /// The session and, after a colon, the version [default: the current session's newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]", add = completion::sessions())]
    session: Option<String>,
}

impl Objects {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        let count = snapshot.log.count();
        let mut position = count.saturating_sub(self.limit.unwrap_or(count));
        let entries = workspace.bucket.entries(&snapshot.log, position..count, None);
        let mut chunks = entries.try_ready_chunks(CHUNK);
        pager::want();
        loop {
            let (chunk, failure) = match chunks.try_next().await {
                Ok(Some(chunk)) => (chunk, None),
                Ok(None) => return Ok(()),
                Err(error) => (error.0, Some(error.1)),
            };
            if is_json() {
                let places = position..;
                to_json_lines(
                    chunk.iter().zip(places).map(|(entry, at)| EntryView::of(entry, Some(at))),
                )?;
            } else {
                to_stdout(|out| chunk.iter().try_for_each(|entry| line(out, "", entry)))?;
            }
            position += chunk.len() as u64;
            if let Some(error) = failure {
                return Err(error.into());
            }
        }
    }
}

/// A line of a listing of events.
pub fn line(out: &mut dyn Write, indent: &str, entry: &Entry) -> std::io::Result<()> {
    let attributes = entry.attributes();
    let hash = paint(Style::Dim, &entry.hash().to_string());
    let size = human_size(entry.size());
    let content_type = attributes.content_type.as_deref().unwrap_or("-");
    write!(out, "{indent}{hash}  {size:>10}  {}", escape_line(content_type))?;
    match &attributes.name {
        Some(name) => writeln!(out, "  {}", paint(Style::Name, &escape_line(name))),
        None => writeln!(out),
    }
}

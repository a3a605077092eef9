use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{SessionId, Timestamp};
use serde::Serialize;

use crate::commands::tree::names;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{is_json, to_json_lines, to_stdout};
use crate::pager;
use crate::style::{Style, paint};

/// How many sessions are looked at at a time.
const PARALLEL: usize = 32;
/// How many are written at a time.
const CHUNK: usize = 256;

/// List the bucket's sessions, newest first
///
/// A line each: `*` for the current one, the id, when it was created, and its names.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark sessions\n  \
    pugmark sessions -n 10\n  \
    pugmark sessions --json | jq -r .session")]
pub struct Sessions {
    /// At most this many
    #[arg(short = 'n', long, value_name = "COUNT")]
    limit: Option<usize>,
}

/// A session as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    session: SessionId,
    created: Timestamp,
    refs: &'a [String],
    current: bool,
}

impl Sessions {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        pager::want();
        let bucket = &workspace.bucket;
        let names = names(bucket).await?;
        let view = |session: SessionId| View {
            session,
            created: session.created(),
            refs: names.get(&session).map_or(&[], Vec::as_slice),
            current: workspace.context.session == Some(session),
        };
        let mut chunks = bucket
            .sessions()
            .map_ok(|id| async move { Ok((id, bucket.has_session(&id).await?)) })
            .try_buffered(PARALLEL)
            .try_filter_map(|(id, exists)| futures::future::ready(Ok(exists.then_some(id))))
            .take(self.limit.unwrap_or(usize::MAX))
            .try_ready_chunks(CHUNK)
            .boxed();
        loop {
            let (chunk, failure) = match chunks.try_next().await {
                Ok(Some(chunk)) => (chunk, None),
                Ok(None) => return Ok(()),
                Err(error) => (error.0, Some(error.1)),
            };
            let views = chunk.into_iter().map(view);
            if is_json() {
                to_json_lines(views)?;
            } else {
                to_stdout(|out| views.into_iter().try_for_each(|view| line(out, &view)))?;
            }
            if let Some(error) = failure {
                return Err(error.into());
            }
        }
    }
}

fn line(out: &mut dyn std::io::Write, view: &View) -> std::io::Result<()> {
    let mark = if view.current { paint(Style::Strong, "*") } else { " ".to_owned() };
    let created = paint(Style::Dim, &view.created.to_string());
    write!(out, "{mark} {}  {created}", view.session)?;
    if !view.refs.is_empty() {
        write!(out, "  {}", paint(Style::Name, &view.refs.join(", ")))?;
    }
    writeln!(out)
}

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use pugmark_log::SessionId;
use pugmark_log::bundle::{self, Held, Written};
use serde::Serialize;

use crate::bundles::{self, error_of, note_absent};
use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{counted, escape, human_size, is_json, note, to_json, to_stdout};

/// Write sessions, with all that they need, to one file
///
/// The file holds every snapshot and object of the sessions, of those that they were forked from up
/// to the fork, and the components that ran. `replay` takes it without a bucket, `unbundle` puts it
/// into another one, and any tar unpacks it. The same sessions give the same bytes.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark bundle -o run.pug\n  \
    pugmark bundle -o both.pug main experiment:12\n  \
    tar --zstd -tf run.pug")]
pub struct Bundle {
    /// The sessions and, after a colon, their last version [default: the current one, the newest]
    #[arg(value_name = "SESSION[:VERSION]", add = completion::sessions())]
    sessions: Vec<String>,

    /// The file; one that exists is replaced once the bundle is whole. `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// A bundle as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    file: &'a Path,
    sessions: Vec<HeldView>,
    absent: &'a [SessionId],
    members: u64,
    unpacked_bytes: u64,
}

/// A session in a bundle, as part of a JSON document.
#[derive(Serialize)]
pub struct HeldView {
    session: SessionId,
    version: u64,
    ancestor: bool,
}

impl HeldView {
    /// The view of a session in a bundle.
    pub fn of(held: &Held) -> Self {
        Self { session: held.session, version: held.version, ancestor: held.ancestor }
    }
}

impl Bundle {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let mut tips = Vec::new();
        for session in &self.sessions {
            tips.push(workspace.snapshot(Some(session)).await?);
        }
        if tips.is_empty() {
            tips.push(workspace.snapshot(None).await?);
        }
        if self.output == Path::new("-") {
            let written = bundle::write(&workspace.bucket, &tips, io::stdout()).await;
            let (_, written) = written.map_err(|error| error_of(&self.output, error))?;
            note_absent(&written.contents.absent);
            return Ok(());
        }
        let written = bundles::write(&workspace.bucket, &tips, &self.output).await?;
        self.show(&written)
    }

    fn show(&self, written: &Written) -> Result<(), Error> {
        let Written { contents, members, unpacked_bytes } = written;
        if is_json() {
            return to_json(&View {
                file: &self.output,
                sessions: contents.sessions.iter().map(HeldView::of).collect(),
                absent: &contents.absent,
                members: *members,
                unpacked_bytes: *unpacked_bytes,
            });
        }
        let sessions = counted(contents.sessions.len() as u64, "session");
        let size = human_size(*unpacked_bytes);
        note(&format!("{sessions}, {}, {size} unpacked", counted(*members, "file")));
        let path = self.output.display().to_string();
        Ok(to_stdout(|out| writeln!(out, "{}", escape(&path)))?)
    }
}

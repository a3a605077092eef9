use std::path::PathBuf;

use clap::Args;
use pugmark_log::SessionId;
use serde::Serialize;

use crate::commands::push::draft;
use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{is_json, to_json, to_stdout};
use crate::view::{EntryView, Point};

/// Branch a session: one child for each seed file
///
/// A child inherits the log up to the snapshot that is forked, with its seed behind it. Prints the
/// children's ids; the last one becomes the current session. `pugmark run --fork` branches without
/// a seed.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark fork turn.json\n  \
    pugmark fork -s 019a8c:3 turn.json\n  \
    pugmark fork calm.json bold.json\n  \
    echo '{\"kind\":\"user_message\",\"text\":\"no\"}' | pugmark fork -s code-review:3 -")]
pub struct Fork {
    /// Seed files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The session and, after a colon, the version to fork [default: the current session's newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]", add = completion::sessions())]
    session: Option<String>,
}

/// A child as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    session: SessionId,
    parent: Point,
    objects: Vec<EntryView<'a>>,
}

impl Fork {
    pub async fn run(self, mut workspace: Workspace) -> Result<(), Error> {
        let parent = workspace.snapshot(self.session.as_deref()).await?;
        let seeds = self.files.iter().map(|file| draft(file)).collect::<Result<Vec<_>, _>>()?;
        for seed in seeds {
            let child = workspace.bucket.fork(&parent, &[seed]).await?;
            workspace.switch_to(child.session)?;
            if is_json() {
                to_json(&View {
                    session: child.session,
                    parent: Point::of(&parent),
                    objects: child.objects.iter().map(|seed| EntryView::of(seed, None)).collect(),
                })?;
            } else {
                to_stdout(|out| writeln!(out, "{}", child.session))?;
            }
        }
        Ok(())
    }
}

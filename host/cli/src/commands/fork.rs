use std::path::PathBuf;

use clap::Args;

use crate::commands::push::draft;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::to_stdout;

/// Branch a session: one child for each seed file
///
/// A child inherits the log up to the snapshot that is forked, with its seed behind it. Prints the
/// children's ids; the last one becomes the current session. `pugmark run --fork` branches without
/// a seed.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark fork turn.json\n  \
    pugmark fork -s 019a8c:3 turn.json")]
pub struct Fork {
    /// Seed files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The session and, after a colon, the version to fork [default: the current session's newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]")]
    session: Option<String>,
}

impl Fork {
    pub async fn run(self, mut workspace: Workspace) -> Result<(), Error> {
        let parent = workspace.snapshot(self.session.as_deref()).await?;
        let seeds = self.files.iter().map(|file| draft(file)).collect::<Result<Vec<_>, _>>()?;
        for seed in seeds {
            let child = workspace.bucket.fork(&parent, &[seed]).await?;
            workspace.switch_to(child.session)?;
            to_stdout(|out| writeln!(out, "{}", child.session))?;
        }
        Ok(())
    }
}

use clap::Args;

use crate::commands::tree::{self, Detail};
use crate::error::Error;
use crate::open::Workspace;

/// Draw the session tree
///
/// A line for each session of the tree that the current one belongs to: its id, the version it was
/// forked at, its newest version, how many events its log has, and what it waits for. `*` marks the
/// current session.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark log\n  \
    pugmark log -A\n  \
    pugmark log -n 20")]
pub struct Log {
    /// Also each snapshot, with the objects that it made durable
    #[arg(short = 'A', long)]
    all: bool,

    /// Only the newest snapshots of each session; implies -A
    #[arg(short = 'n', long, value_name = "COUNT")]
    limit: Option<u64>,

    /// The session whose tree is drawn [default: the current one]
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
}

impl Log {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let session = workspace.session(self.session.as_deref()).await?;
        let detail = match self.limit {
            None if !self.all => Detail::Session,
            newest => Detail::Snapshots { newest },
        };
        tree::draw(&workspace, session, &detail).await
    }
}

use clap::Args;
use futures::TryStreamExt as _;

use crate::commands::{body_of, find_entry, whole_digest};
use crate::error::Error;
use crate::open::Workspace;
use crate::output::to_stdout;

/// Print the body of an object, or of every event of a session
///
/// With a hash, prints that body as it is stored. Without one, prints the bodies of the whole log in
/// order, each ending in a line break.
#[derive(Args)]
pub struct Cat {
    /// The object's hash, or the beginning of it
    #[arg(value_name = "HASH")]
    hash: Option<String>,

    /// The session and, after a colon, the version [default: the current session's newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]")]
    session: Option<String>,
}

impl Cat {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let Some(hash) = &self.hash else { return self.whole_log(workspace).await };
        // An object of its own needs no session to be found.
        if let Some(digest) = whole_digest(hash) {
            match workspace.bucket.read_object(&digest).await {
                Ok(body) => return print(body).await,
                Err(pugmark_log::Error::ObjectNotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        let entry = find_entry(&workspace, &snapshot, hash).await?;
        match entry.data() {
            Some(data) => Ok(to_stdout(|out| out.write_all(data))?),
            None => print(workspace.bucket.read_object(&entry.hash()).await?).await,
        }
    }

    async fn whole_log(self, workspace: Workspace) -> Result<(), Error> {
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        let mut entries = workspace.bucket.entries(&snapshot.log, 0..snapshot.log.count(), None);
        while let Some(entry) = entries.try_next().await? {
            let body = body_of(&workspace, &entry).await?;
            to_stdout(|out| {
                out.write_all(&body)?;
                if body.ends_with(b"\n") { Ok(()) } else { out.write_all(b"\n") }
            })?;
        }
        Ok(())
    }
}

async fn print(mut body: pugmark_log::Body) -> Result<(), Error> {
    while let Some(piece) = body.stream.try_next().await? {
        to_stdout(|out| out.write_all(&piece))?;
    }
    Ok(())
}

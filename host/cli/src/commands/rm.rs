use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;
use pugmark_log::{SessionId, Snapshot};
use serde::Serialize;

use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{counted, is_json, note, to_json};

/// Remove a session, for good
///
/// Nothing reads, extends or forks it from then on, and its names are dropped. Its forks keep their
/// own logs, inherited history included. What only it held is freed by `pugmark gc`. Asks first, on
/// a terminal.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark rm 019a8c\n  \
    pugmark rm --yes experiment")]
pub struct Rm {
    /// The session's id, a unique beginning or end of it, or its name
    #[arg(value_name = "SESSION", add = completion::sessions())]
    session: String,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// A session that was removed, as a JSON document.
#[derive(Serialize)]
struct View {
    session: SessionId,
    version: u64,
    unlinked: Vec<String>,
}

impl Rm {
    pub async fn run(self, mut workspace: Workspace) -> Result<(), Error> {
        let session = workspace.find_session(&self.session).await?;
        let tip = match workspace.bucket.tip(&session, None).await {
            Ok(tip) => Some(tip),
            // One whose removal was cut short: it is gone on with.
            Err(pugmark_log::Error::SessionRemoved { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(tip) = tip.filter(|_| !self.yes)
            && !confirmed(&workspace, &tip).await?
        {
            note("nothing was removed");
            return Ok(());
        }
        let removed = workspace.bucket.remove(&session).await?;
        let mut unlinked = Vec::new();
        for (name, named) in workspace.bucket.refs().await? {
            if named == session {
                workspace.bucket.unlink(&name).await?;
                unlinked.push(name);
            }
        }
        workspace.forget(session)?;
        if is_json() {
            return to_json(&View { session, version: removed.version, unlinked });
        }
        note(&format!("removed {session}"));
        Ok(())
    }
}

/// Asks whoever sits at the terminal.
async fn confirmed(workspace: &Workspace, tip: &Snapshot) -> Result<bool, Error> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() || is_json() {
        return Err(Error::invalid(
            format!("nobody can be asked whether to remove session {}", tip.session),
            "say --yes to remove it without being asked",
        ));
    }
    let forks = workspace.bucket.children(&tip.session).await?.len() as u64;
    let events = counted(tip.log.count(), "event");
    let kept = match forks {
        0 => String::new(),
        forks => format!("; {} keep what they inherited", counted(forks, "fork")),
    };
    let question = format!("remove session {} with {events}{kept}? [y/N] ", tip.session);
    let _ = write!(io::stderr(), "{question}");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

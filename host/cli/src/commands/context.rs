use clap::Args;
use pugmark_log::SessionId;
use serde::Serialize;

use crate::error::Error;
use crate::open::Workspace;
use crate::output::{counted, is_json, to_json, to_stdout};
use crate::view::StateView;

/// Show the current bucket, session and snapshot
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark context\n  \
    pugmark context --json | jq -r .session")]
pub struct ShowContext {}

/// The context as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    bucket: &'a str,
    session: Option<SessionId>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    snapshot: Option<SnapshotView>,
}

/// Its snapshot, the session's newest.
#[derive(Serialize)]
struct SnapshotView {
    version: u64,
    events: u64,
    #[serde(flatten)]
    state: StateView,
}

impl ShowContext {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let bucket = &workspace.context.bucket;
        let session = workspace.context.session;
        let snapshot = match session {
            None => None,
            Some(session) => {
                let tip = workspace.bucket.tip(&session, None).await?;
                let (version, events) = (tip.version, tip.log.count());
                Some(SnapshotView { version, events, state: StateView::of(&tip) })
            }
        };
        if is_json() {
            return to_json(&View { bucket, session, snapshot });
        }
        to_stdout(|out| {
            writeln!(out, "bucket    {bucket}")?;
            let Some((session, tip)) = session.zip(snapshot) else {
                return writeln!(out, "session   none");
            };
            writeln!(out, "session   {session}")?;
            let events = counted(tip.events, "event");
            writeln!(out, "snapshot  {}  {events}, {}", tip.version, tip.state)
        })?;
        Ok(())
    }
}

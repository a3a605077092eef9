//! The session tree, drawn line by line as it is read.

use std::collections::HashMap;
use std::fmt::Write as _;

use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{Bucket, Ended, Manifest, SessionId, Snapshot, SnapshotKind, State};

use crate::commands::objects;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{escape_line, to_stdout};

/// How many snapshots or manifests are read at a time.
const PARALLEL: usize = 8;

/// How much of each session is drawn.
pub enum Detail {
    /// A line.
    Session,
    /// A line, and each of the newest snapshots with the objects that it made durable.
    Snapshots {
        /// How many; all if `None`.
        newest: Option<u64>,
    },
}

/// A session whose turn to be drawn has not come yet.
struct Branch {
    manifest: Manifest,
    /// What stands before its own line.
    lead: String,
    /// What stands before the lines below it.
    prefix: String,
}

/// Draws the whole tree that `session` belongs to, from its root.
pub async fn draw(workspace: &Workspace, session: SessionId, detail: &Detail) -> Result<(), Error> {
    let bucket = &workspace.bucket;
    let mut names: HashMap<SessionId, Vec<String>> = HashMap::new();
    for (name, session) in bucket.refs().await? {
        names.entry(session).or_default().push(name);
    }
    let mut root = bucket.manifest(&session).await?;
    while let Some(parent) = &root.parent {
        root = bucket.manifest(&parent.session).await?;
    }
    let mut open = vec![Branch { manifest: root, lead: String::new(), prefix: String::new() }];
    while let Some(branch) = open.pop() {
        let id = branch.manifest.session;
        let tip = match bucket.tip(&id, None).await {
            Ok(tip) => tip,
            // A fork that was cut short before it came to be.
            Err(pugmark_log::Error::SessionNotFound { .. }) if id != session => continue,
            Err(error) => return Err(error.into()),
        };
        let children = children(bucket, &id).await?;
        let mark = if workspace.context.session == Some(id) { "  *" } else { "" };
        let named = names.get(&id).map(|names| format!("  ({})", names.join(", ")));
        let line = session_line(&branch.manifest, &tip);
        let named = named.unwrap_or_default();
        to_stdout(|out| writeln!(out, "{}{line}{named}{mark}", branch.lead))?;
        if let Detail::Snapshots { newest } = detail {
            let rail = if children.is_empty() { "  " } else { "│ " };
            draw_snapshots(bucket, &tip, *newest, &format!("{}{rail}", branch.prefix)).await?;
        }
        let last = children.len().saturating_sub(1);
        let branches = children.into_iter().enumerate().map(|(index, manifest)| {
            let (lead, rail) =
                if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            Branch {
                manifest,
                lead: format!("{}{lead}", branch.prefix),
                prefix: format!("{}{rail}", branch.prefix),
            }
        });
        open.extend(branches.rev());
    }
    Ok(())
}

/// The forks of a session, by the version they were forked at and then by age.
async fn children(bucket: &Bucket, session: &SessionId) -> Result<Vec<Manifest>, Error> {
    let ids = bucket.children(session).await?;
    let read = ids.into_iter().map(|id| async move {
        match bucket.manifest(&id).await {
            Ok(manifest) => Ok(Some(manifest)),
            Err(pugmark_log::Error::SessionNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    });
    let read = futures::stream::iter(read).buffered(PARALLEL);
    let mut manifests: Vec<Manifest> =
        read.try_filter_map(|m| async { Ok(m) }).try_collect().await?;
    let forked_at = |m: &Manifest| m.parent.as_ref().map_or(0, |parent| parent.version);
    manifests.sort_by_key(|m| (forked_at(m), m.session));
    Ok(manifests)
}

fn session_line(manifest: &Manifest, tip: &Snapshot) -> String {
    let mut line = manifest.session.to_string();
    if let Some(parent) = &manifest.parent {
        let _ = write!(line, "  forked at v{}", parent.version);
    }
    let events = tip.log.count();
    let plural = if events == 1 { "" } else { "s" };
    let _ = write!(line, "  v{}  {events} event{plural}  {}", tip.version, state_name(tip));
    if let Some(handler) = &manifest.handler {
        let _ = write!(line, "  handler {}", escape_line(handler));
    }
    line
}

/// What a session waits for, in words.
pub fn state_name(tip: &Snapshot) -> String {
    match tip.state() {
        State::Due => "due".to_owned(),
        State::Sleeping { until } => format!("sleeping until {until}"),
        State::AtRest if tip.last.ended == Ended::Pause => "paused".to_owned(),
        State::AtRest => "at rest".to_owned(),
    }
}

async fn draw_snapshots(
    bucket: &Bucket,
    tip: &Snapshot,
    newest: Option<u64>,
    prefix: &str,
) -> Result<(), Error> {
    let from = (tip.version + 1).saturating_sub(newest.unwrap_or(u64::MAX));
    if from > 0 {
        to_stdout(|out| writeln!(out, "{prefix}… {from} older versions"))?;
    }
    let session = tip.session;
    let read = (from..=tip.version)
        .map(|version| async move { bucket.snapshot_named(&session, version).await });
    let mut snapshots = futures::stream::iter(read).buffered(PARALLEL);
    while let Some(snapshot) = snapshots.try_next().await? {
        let line = snapshot_line(&snapshot);
        let indent = format!("{prefix}    ");
        to_stdout(|out| {
            writeln!(out, "{prefix}{line}")?;
            snapshot.objects.iter().try_for_each(|entry| objects::line(out, &indent, entry))
        })?;
    }
    Ok(())
}

fn snapshot_line(snapshot: &Snapshot) -> String {
    let kind = match snapshot.kind {
        SnapshotKind::Checkpoint => "checkpoint",
        SnapshotKind::Provisional => "provisional",
    };
    let mut line = format!("v{}  {}  {kind}", snapshot.version, snapshot.created);
    if let Some(step) = &snapshot.step {
        if let Ok(step) = serde_json::from_str::<StepView>(step.get()) {
            let _ = write!(line, "  step by {} on v{}", escape_line(&step.handler), step.snapshot);
        }
        match snapshot.last.ended {
            Ended::No => {}
            Ended::Pause => line.push_str(", paused"),
            Ended::Sleep(until) => {
                let _ = write!(line, ", sleeps until {until}");
            }
            Ended::Empty => line.push_str(", nothing to add"),
        }
    }
    line
}

/// What is shown of a step's record.
#[derive(serde::Deserialize)]
struct StepView {
    handler: String,
    /// The version that the step began on.
    snapshot: u64,
}

use std::time::Duration;

use clap::Args;
use futures::TryStreamExt as _;
use pugmark_log::{Collect, Collected, GRACE, Garbage, GarbageKind, Marked};
use pugmark_runtime::protocol::duration;
use serde::Serialize;

use crate::error::Error;
use crate::open::Workspace;
use crate::output::{counted, human_size, is_json, note, to_json, to_stdout};

/// Find what nothing in the bucket refers to any more, and delete it if told to
///
/// Every version of every session is kept, and all that it names. What is left was stored by a
/// write that came to nothing, or belongs to a session that `pugmark rm` has removed. Nothing is
/// deleted without --delete, and nothing younger than the grace window at all. Others may go on
/// reading and writing meanwhile.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark gc\n  \
    pugmark gc --delete")]
pub struct Gc {
    /// Delete, and do not only say what would be
    #[arg(long)]
    delete: bool,

    /// How old something must be [default: 24h]
    ///
    /// A write must be done within half of it. Everybody who collects in a bucket must say the same.
    #[arg(long, value_name = "DURATION", value_parser = grace)]
    grace: Option<Duration>,
}

/// What happens, as JSON documents.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum View<'a> {
    /// What is referred to.
    Kept { sessions: u64, snapshots: u64, objects: u64 },
    /// Something that nothing refers to.
    Garbage { key: &'a str, bytes: u64, kind: &'static str },
    /// All of that together.
    Total { count: u64, bytes: u64, deleted: bool },
}

impl Gc {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let bucket = workspace.bucket.clone().with_grace(self.grace.unwrap_or(GRACE));
        let mut collected = bucket.collect(Collect { dry_run: !self.delete });
        let (mut count, mut bytes) = (0, 0);
        while let Some(found) = collected.try_next().await? {
            match found {
                Collected::Marked(marked) => kept(marked)?,
                Collected::Garbage(garbage) => {
                    count += 1;
                    bytes += garbage.bytes;
                    show(&garbage)?;
                }
            }
        }
        if is_json() {
            return to_json(&View::Total { count, bytes, deleted: self.delete });
        }
        let total = format!("{}, {}", counted(count, "thing"), human_size(bytes));
        if count == 0 {
            note("nothing to delete");
        } else if self.delete {
            note(&format!("deleted {total}"));
        } else {
            note(&format!("{total}; nothing was deleted: --delete does it"));
        }
        Ok(())
    }
}

fn kept(marked: Marked) -> Result<(), Error> {
    let Marked { sessions, snapshots, objects } = marked;
    if is_json() {
        return to_json(&View::Kept { sessions, snapshots, objects });
    }
    let (sessions, snapshots) = (counted(sessions, "session"), counted(snapshots, "snapshot"));
    note(&format!("kept: {sessions}, {snapshots}, {}", counted(objects, "object")));
    Ok(())
}

fn show(garbage: &Garbage) -> Result<(), Error> {
    let Garbage { key, bytes, kind } = garbage;
    let kind = kind_name(*kind);
    if is_json() {
        return to_json(&View::Garbage { key, bytes: *bytes, kind });
    }
    to_stdout(|out| writeln!(out, "{kind:<8}  {:>10}  {key}", human_size(*bytes)))?;
    Ok(())
}

fn kind_name(kind: GarbageKind) -> &'static str {
    match kind {
        GarbageKind::Object => "object",
        GarbageKind::Version => "version",
        GarbageKind::Manifest => "manifest",
        GarbageKind::Child => "child",
        GarbageKind::Sweep => "sweep",
    }
}

fn grace(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

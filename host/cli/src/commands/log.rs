use clap::Args;
use pugmark_log::Timestamp;
use pugmark_runtime::protocol::duration;

use crate::commands::tree::{self, Detail, Wanted};
use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::pager;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Draw the session tree
///
/// A line for each session of the tree that the current one belongs to: its id, the version it was
/// forked at, its newest version, how many events its log has, and what it waits for. `*` marks the
/// current session.
///
/// Of a session with many forks the newest are drawn, and those that have a name or lead to the
/// current session; a line counts the others. Filters leave a session's ancestors in place, and a
/// line counts what they hide. --json has all sessions of the tree that match, one a line, and with
/// -A each one's snapshots after it.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark log\n  \
    pugmark log -A\n  \
    pugmark log -n 20\n  \
    pugmark log --since 2h --handler triage\n  \
    pugmark log --ref 'experiment-*'\n  \
    pugmark log -A --json | jq 'select(.type == \"snapshot\")'")]
pub struct Log {
    /// Also each snapshot, with the objects that it made durable
    #[arg(short = 'A', long)]
    all: bool,

    /// Only the newest snapshots of each session; implies -A
    #[arg(short = 'n', long, value_name = "COUNT")]
    limit: Option<u64>,

    /// Only what happened since then: 90m, 2h, 3d, 1w or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only sessions that this handler is to pick up, or made the last step of
    #[arg(long, value_name = "NAME")]
    handler: Option<String>,

    /// Only sessions with this name; `*` stands for any characters
    ///
    /// Without -s, draws the trees that these sessions belong to.
    #[arg(long = "ref", value_name = "NAME", add = completion::names())]
    name: Option<String>,

    /// Draw every fork, however many a session has
    #[arg(long)]
    all_forks: bool,

    /// The session whose tree is drawn [default: the current one]
    #[arg(short, long, value_name = "SESSION", add = completion::sessions())]
    session: Option<String>,
}

impl Log {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let detail = match self.limit {
            None if !self.all => Detail::Session,
            newest => Detail::Snapshots { newest },
        };
        let now = workspace.bucket.environment().now();
        let since = self.since.as_deref().map(|text| parse_since(text, now)).transpose()?;
        // Without a session, the names say which trees.
        let session = match (&self.session, &self.name) {
            (None, Some(_)) => None,
            (named, _) => Some(workspace.session(named.as_deref()).await?),
        };
        let wanted = Wanted {
            detail,
            since,
            handler: self.handler,
            name: self.name,
            all_forks: self.all_forks,
        };
        pager::want();
        tree::show(&workspace, session, &wanted).await
    }
}

/// A point in time, given as such or as how long ago it was.
fn parse_since(text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    let ago = |ms: u64| Timestamp::from_millis(now.as_millis().saturating_sub(ms));
    for (unit, days) in [("d", 1), ("w", 7)] {
        if let Some(count) = text.strip_suffix(unit).and_then(|n| n.parse::<u64>().ok()) {
            return Ok(ago(count.saturating_mul(days * DAY_MS)));
        }
    }
    if let Ok(duration) = duration::parse(text) {
        return Ok(ago(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)));
    }
    let day = format!("{text}T00:00:00Z");
    text.parse().or_else(|_| day.parse()).map_err(|_| {
        let message = format!("`{text}` is neither a duration nor a point in time");
        Error::invalid(message, "write --since 2h, 3d, 2026-01-31 or 2026-01-31T12:00:00Z")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations_and_times() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("90m", "2026-01-31T10:30:00.000Z"),
            ("2d", "2026-01-29T12:00:00.000Z"),
            ("1w", "2026-01-24T12:00:00.000Z"),
            ("2026-01-30", "2026-01-30T00:00:00.000Z"),
            ("2026-01-30T01:02:03+01:00", "2026-01-30T00:02:03.000Z"),
        ] {
            assert_eq!(parse_since(text, now).unwrap().to_string(), expected, "{text}");
        }
        assert!(parse_since("yesterday", now).is_err());
    }
}

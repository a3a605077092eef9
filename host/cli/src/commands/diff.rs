mod entry;
pub(super) mod json;
pub(super) mod text;

use std::collections::HashMap;
use std::process::ExitCode;

use clap::Args;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use pugmark_log::{Bucket, Difference as LogDifference, Entry, SessionId, Snapshot};
use serde::Serialize;

use crate::completion;
use crate::error::{Error, exit};
use crate::open::Workspace;
use crate::output::{is_json, to_stdout};
use crate::pager;
use crate::view::{EntryView, Point};
use entry::{Attribute, Bodies, Difference};

/// How many pairs of events are compared at a time.
const PARALLEL: usize = 8;

/// Compare the logs of two sessions, or of two versions
///
/// What both logs begin with is found through the history that they share, and only counted. After
/// it, events are compared in pairs, by their place in the log: JSON bodies path by path, text
/// between the lines that are alike, anything else by its hash. `-` marks what only the first has,
/// `+` what only the second has, `~` what differs.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark diff baseline experiment\n  \
    pugmark diff 019a8c:3 019a8c:7\n  \
    pugmark diff --exit-code baseline && echo the same\n  \
    pugmark diff baseline experiment --json | jq '.changes[].body'")]
pub struct Diff {
    /// The first session and, after a colon, the version
    #[arg(value_name = "A", add = completion::sessions())]
    a: String,

    /// The second one [default: the current session's newest version]
    #[arg(value_name = "B", add = completion::sessions())]
    b: Option<String>,

    /// End with exit code 20 if the logs differ, with 0 if they do not
    #[arg(long)]
    exit_code: bool,
}

/// How many events differ in which way.
#[derive(Default, Serialize, Clone, Copy, PartialEq, Eq)]
struct Counts {
    changed: u64,
    removed: u64,
    added: u64,
}

/// Both sides, and what they share.
struct Sides {
    a: Snapshot,
    b: Snapshot,
    common: u64,
    ancestor: Option<Point>,
}

/// The beginning of the JSON document, before its changes.
#[derive(Serialize)]
struct HeadView {
    a: SideView,
    b: SideView,
    common: u64,
    ancestor: Option<Point>,
}

#[derive(Serialize)]
struct SideView {
    #[serde(flatten)]
    point: Point,
    events: u64,
}

/// An event of which the two logs say different things, as part of the JSON document.
#[derive(Serialize)]
struct ChangeView<'a> {
    position: u64,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<EntryView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<EntryView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<&'a [Attribute]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a Bodies>,
}

/// An event of which the two logs say different things.
enum Change {
    Removed(Box<Entry>),
    Added(Box<Entry>),
    Changed(Box<(Entry, Entry, Difference)>),
}

impl Diff {
    pub async fn run(self, workspace: Workspace) -> Result<ExitCode, Error> {
        let a = workspace.snapshot(Some(&self.a)).await?;
        let b = workspace.snapshot(self.b.as_deref()).await?;
        let bucket = &workspace.bucket;
        let difference = bucket.difference(&a.log, &b.log).await?;
        let ancestor = common_ancestor(bucket, &a, &b).await?;
        let sides = Sides { a, b, common: difference.common, ancestor };
        pager::want();
        let counts = sides.compare(&workspace, difference).await?;
        let different = counts != Counts::default();
        let code = if different && self.exit_code { exit::DIFFERENT } else { 0 };
        Ok(ExitCode::from(code))
    }
}

impl Sides {
    async fn compare(
        &self,
        workspace: &Workspace,
        difference: LogDifference,
    ) -> Result<Counts, Error> {
        self.begin()?;
        let mut counts = Counts::default();
        let mut changes = pairs(difference)
            .map_ok(|pair| compare_pair(workspace, pair))
            .try_buffered(PARALLEL)
            .boxed_local();
        while let Some((position, change)) = changes.try_next().await? {
            let Some(change) = change else { continue };
            let first = counts == Counts::default();
            match change {
                Change::Removed(_) => counts.removed += 1,
                Change::Added(_) => counts.added += 1,
                Change::Changed(_) => counts.changed += 1,
            }
            show(position, &change, first)?;
        }
        end(counts)?;
        Ok(counts)
    }

    fn begin(&self) -> Result<(), Error> {
        if !is_json() {
            return text::begin(self);
        }
        let side = |snapshot: &Snapshot| SideView {
            point: Point::of(snapshot),
            events: snapshot.log.count(),
        };
        let (common, ancestor) = (self.common, self.ancestor);
        let head = HeadView { a: side(&self.a), b: side(&self.b), common, ancestor };
        let head = to_bytes(&head)?;
        to_stdout(|out| {
            out.write_all(head.strip_suffix(b"}").unwrap_or(&head))?;
            out.write_all(b",\"changes\":[")
        })?;
        Ok(())
    }
}

fn show(position: u64, change: &Change, first: bool) -> Result<(), Error> {
    fn view(entry: &Entry) -> Option<EntryView<'_>> {
        Some(EntryView::of(entry, None))
    }
    if !is_json() {
        return text::change(position, change);
    }
    let plain = |change, a, b| ChangeView { position, change, a, b, attributes: None, body: None };
    let view = match change {
        Change::Removed(a) => plain("removed", view(a), None),
        Change::Added(b) => plain("added", None, view(b)),
        Change::Changed(both) => {
            let (a, b, difference) = both.as_ref();
            ChangeView {
                attributes: Some(&difference.attributes),
                body: Some(&difference.bodies),
                ..plain("changed", view(a), view(b))
            }
        }
    };
    let view = to_bytes(&view)?;
    to_stdout(|out| {
        out.write_all(if first { b"" } else { b"," })?;
        out.write_all(&view)
    })?;
    Ok(())
}

fn end(counts: Counts) -> Result<(), Error> {
    if !is_json() {
        return text::end(counts);
    }
    let counts = to_bytes(&counts)?;
    to_stdout(|out| {
        out.write_all(b"],\"counts\":")?;
        out.write_all(&counts)?;
        out.write_all(b"}\n")
    })?;
    Ok(())
}

fn to_bytes(view: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(view).map_err(|source| Error::Json { source })
}

type Pair = (u64, Option<Entry>, Option<Entry>);

/// The events behind what both logs share, in pairs of the same place.
fn pairs(difference: LogDifference) -> impl Stream<Item = Result<Pair, Error>> {
    let start = (difference.left, difference.right, difference.common);
    futures::stream::try_unfold(start, |(mut a, mut b, position)| async move {
        let (left, right) = futures::try_join!(a.try_next(), b.try_next())?;
        if left.is_none() && right.is_none() {
            return Ok(None);
        }
        Ok(Some(((position, left, right), (a, b, position + 1))))
    })
}

/// What differs between two events of the same place, if anything does.
async fn compare_pair(
    workspace: &Workspace,
    (position, a, b): Pair,
) -> Result<(u64, Option<Change>), Error> {
    let change = match (a, b) {
        (Some(a), Some(b)) if a == b => None,
        (Some(a), Some(b)) => {
            let difference = Difference::between(workspace, &a, &b).await?;
            Some(Change::Changed(Box::new((a, b, difference))))
        }
        (Some(a), None) => Some(Change::Removed(Box::new(a))),
        (None, b) => b.map(|b| Change::Added(Box::new(b))),
    };
    Ok((position, change))
}

/// The newest version that both come from: of one session, the older version.
async fn common_ancestor(
    bucket: &Bucket,
    a: &Snapshot,
    b: &Snapshot,
) -> Result<Option<Point>, Error> {
    let of_b: HashMap<SessionId, u64> = ancestry(bucket, b)
        .await?
        .into_iter()
        .map(|point| (point.session, point.version))
        .collect();
    let of_a = ancestry(bucket, a).await?;
    Ok(of_a.into_iter().find_map(|point| {
        let version = point.version.min(*of_b.get(&point.session)?);
        Some(Point { version, ..point })
    }))
}

/// A version, the one that its session was forked from, and so on to the root.
async fn ancestry(bucket: &Bucket, snapshot: &Snapshot) -> Result<Vec<Point>, Error> {
    let mut points = vec![Point::of(snapshot)];
    let mut session = snapshot.session;
    loop {
        let parent = match bucket.manifest(&session).await {
            Ok(manifest) => manifest.parent,
            // The line of descent ends where a session was removed.
            Err(pugmark_log::Error::SessionNotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let Some(parent) = parent else { return Ok(points) };
        points.push(Point { session: parent.session, version: parent.version });
        session = parent.session;
    }
}

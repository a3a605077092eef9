//! Drawing a session tree: as text with its branches, or a JSON document a session.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pugmark_log::{Digest, SessionId, Timestamp};
use serde::Serialize;

use crate::commands::snapshots::Range;
use crate::commands::tree::{Detail, Node, Tree, Wanted};
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{counted, escape_line, is_json, to_json, to_stdout};
use crate::style::{Style, paint};
use crate::view::{Point, StateView};

/// Sessions this deep are still indented below their parents; deeper ones say how deep they are.
const DEEPEST_INDENT: usize = 16;

/// What has yet to be drawn.
enum Branch {
    Session {
        /// Its place in the tree.
        index: usize,
        depth: usize,
        /// What stands before its own line.
        lead: String,
        /// What stands before the lines below it.
        prefix: String,
    },
    /// The forks of a session that are only counted.
    LeftOut { count: usize, prefix: String },
}

/// Draws the sessions of a tree that are shown, with as much of each as is wanted.
pub async fn tree(workspace: &Workspace, tree: &Tree, wanted: &Wanted) -> Result<(), Error> {
    let (lead, prefix) = (String::new(), String::new());
    let mut open = vec![Branch::Session { index: 0, depth: 0, lead, prefix }];
    while let Some(branch) = open.pop() {
        match branch {
            Branch::Session { index, depth, lead, prefix } => {
                let node = &tree.nodes[index];
                if is_json() {
                    json(workspace, node, depth, wanted).await?;
                } else {
                    text(workspace, node, &lead, &prefix, wanted).await?;
                }
                open.extend(below(node, depth, &prefix).into_iter().rev());
            }
            Branch::LeftOut { count, prefix } => {
                let line = format!("… {}", counted(count as u64, "more fork"));
                let line = paint(Style::Dim, &format!("{line}; --all-forks draws them"));
                to_stdout(|out| writeln!(out, "{prefix}└─ {line}"))?;
            }
        }
    }
    if tree.hidden > 0 && !is_json() {
        let hidden = counted(tree.hidden as u64, "other session");
        let line = format!("… {hidden} of this tree left out by the filters");
        to_stdout(|out| writeln!(out, "{}", paint(Style::Dim, &line)))?;
    }
    Ok(())
}

/// The branches of a session, in their order.
fn below(node: &Node, depth: usize, prefix: &str) -> Vec<Branch> {
    let last = node.forks.len().saturating_sub(1);
    let depth = depth + 1;
    let mut branches = Vec::new();
    for (place, fork) in node.forks.iter().enumerate() {
        let is_last = place == last && node.left_out == 0;
        let (corner, rail) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let (lead, prefix) = if depth > DEEPEST_INDENT {
            let level = paint(Style::Dim, &format!("{depth:>4}:"));
            (format!("{level} {corner}"), format!("      {rail}"))
        } else {
            (format!("{prefix}{corner}"), format!("{prefix}{rail}"))
        };
        branches.push(Branch::Session { index: *fork, depth, lead, prefix });
    }
    if node.left_out > 0 {
        branches.push(Branch::LeftOut { count: node.left_out, prefix: prefix.to_owned() });
    }
    branches
}

async fn text(
    workspace: &Workspace,
    node: &Node,
    lead: &str,
    prefix: &str,
    wanted: &Wanted,
) -> Result<(), Error> {
    let session = node.manifest.session;
    let mark = if workspace.context.session == Some(session) {
        format!("  {}", paint(Style::Strong, "*"))
    } else {
        String::new()
    };
    to_stdout(|out| writeln!(out, "{lead}{}{mark}", line(node)))?;
    let (Detail::Snapshots { newest }, Some(tip)) = (&wanted.detail, &node.newest) else {
        return Ok(());
    };
    if !node.matches {
        return Ok(());
    }
    let branches = !node.forks.is_empty() || node.left_out > 0;
    let rail = format!("{prefix}{}", if branches { "│ " } else { "  " });
    let range =
        Range::find(&workspace.bucket, (session, tip.version), *newest, wanted.since).await?;
    range.draw(&workspace.bucket, &rail).await
}

fn line(node: &Node) -> String {
    let mut line = node.manifest.session.to_string();
    if let Some(parent) = &node.manifest.parent {
        let _ = write!(line, "  forked at v{}", parent.version);
    }
    let Some(newest) = &node.newest else {
        let _ = write!(line, "  {}", paint(Style::Dim, "removed"));
        return line;
    };
    let state = newest.state.to_string();
    let state = if newest.state.state == "at-rest" { state } else { paint(Style::Waiting, &state) };
    let _ = write!(line, "  v{}  {}  {state}", newest.version, counted(newest.events, "event"));
    if let Some(handler) = &node.manifest.handler {
        let _ = write!(line, "  handler {}", escape_line(handler));
    }
    if !node.names.is_empty() {
        let _ = write!(line, "  ({})", paint(Style::Name, &node.names.join(", ")));
    }
    line
}

/// A session of a tree as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    r#type: &'static str,
    session: SessionId,
    created: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Point>,
    depth: usize,
    refs: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<&'a str>,
    /// The component that it is pinned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<Digest>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    /// `None` if it was removed.
    version: Option<u64>,
    events: Option<u64>,
    #[serde(flatten)]
    state: StateView,
    updated: Option<Timestamp>,
    current: bool,
}

async fn json(
    workspace: &Workspace,
    node: &Node,
    depth: usize,
    wanted: &Wanted,
) -> Result<(), Error> {
    let newest = node.newest.as_ref();
    // A removed session is there for its forks, unless filters leave gaps anyway.
    if !node.matches && (newest.is_some() || wanted.filters()) {
        return Ok(());
    }
    let manifest = &node.manifest;
    let parent = manifest.parent.as_ref();
    let removed = StateView { state: "removed", until: None };
    to_json(&View {
        r#type: "session",
        session: manifest.session,
        created: manifest.created,
        parent: parent.map(|point| Point { session: point.session, version: point.version }),
        depth,
        refs: &node.names,
        handler: manifest.handler.as_deref(),
        component: manifest.component,
        metadata: &manifest.metadata,
        version: newest.map(|tip| tip.version),
        events: newest.map(|tip| tip.events),
        state: newest.map_or(removed, |tip| tip.state),
        updated: newest.map(|tip| tip.created),
        current: workspace.context.session == Some(manifest.session),
    })?;
    let (Detail::Snapshots { newest: limit }, Some(tip)) = (&wanted.detail, newest) else {
        return Ok(());
    };
    let bucket = &workspace.bucket;
    let range = Range::find(bucket, (manifest.session, tip.version), *limit, wanted.since).await?;
    range.print_json(bucket).await
}

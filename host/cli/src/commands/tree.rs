//! The session tree: reading it level by level, and leaving out what is not wanted.

use std::collections::{HashMap, HashSet};

use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{Bucket, Manifest, SessionId, Snapshot, Timestamp};

use crate::commands::draw;
use crate::commands::forks;
use crate::commands::snapshots::StepView;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::is_json;
use crate::view::StateView;

/// How many sessions are read at a time.
const PARALLEL: usize = 32;

/// How much of each session is shown.
pub enum Detail {
    /// A line.
    Session,
    /// A line, and each of the newest snapshots with the objects that it made durable.
    Snapshots {
        /// How many; all if `None`.
        newest: Option<u64>,
    },
}

/// What is wanted of a tree.
pub struct Wanted {
    /// How much of each session.
    pub detail: Detail,
    /// Only sessions with a version since then, and only such versions.
    pub since: Option<Timestamp>,
    /// Only sessions that this handler is to pick up, or made the last step of.
    pub handler: Option<String>,
    /// Only sessions with a name like this, `*` standing for anything.
    pub name: Option<String>,
    /// Every fork, however many a session has.
    pub all_forks: bool,
}

impl Wanted {
    /// Whether only some of the sessions are wanted.
    pub fn filters(&self) -> bool {
        self.since.is_some() || self.handler.is_some() || self.name.is_some()
    }
}

/// A session of a tree.
pub struct Node {
    /// Its manifest.
    pub manifest: Manifest,
    /// Its newest version; `None` if it was removed, and stands here for its forks.
    pub newest: Option<Newest>,
    /// Its names.
    pub names: Vec<String>,
    /// Whether the filters let it pass.
    pub matches: bool,
    /// Whether it or a session below it passes.
    pub shown: bool,
    /// Its forks, by the version they were forked at and then by age; places in [`Tree::nodes`].
    pub forks: Vec<usize>,
    /// How many more forks it has.
    pub left_out: usize,
}

/// A session's newest version.
pub struct Newest {
    /// Its number.
    pub version: u64,
    /// How many events its log has.
    pub events: u64,
    /// What the session waits for.
    pub state: StateView,
    /// When it was made.
    pub created: Timestamp,
}

/// A tree of sessions; the first is its root, and each comes before its forks.
pub struct Tree {
    /// Its sessions.
    pub nodes: Vec<Node>,
    /// How many sessions the filters hide.
    pub hidden: usize,
}

/// What one `log` shows, and what is known of the bucket for it.
struct Scope<'a> {
    bucket: &'a Bucket,
    wanted: &'a Wanted,
    /// The sessions whose tree is asked for.
    asked: Vec<SessionId>,
    names: HashMap<SessionId, Vec<String>>,
    /// Those, the current session and all their ancestors: always drawn.
    needed: HashSet<SessionId>,
    /// Whether of many forks only some are drawn.
    folds: bool,
}

/// Shows the tree that `session` belongs to, or the trees of all sessions whose name is wanted.
pub async fn show(
    workspace: &Workspace,
    session: Option<SessionId>,
    wanted: &Wanted,
) -> Result<(), Error> {
    let bucket = &workspace.bucket;
    let names = names(bucket).await?;
    let asked = match session {
        Some(session) => vec![session],
        None => named(&names, wanted.name.as_deref().unwrap_or("*"))?,
    };
    let folds = !wanted.all_forks && !is_json();
    let mut scope = Scope { bucket, wanted, asked, names, needed: HashSet::new(), folds };
    let mut roots: Vec<SessionId> = Vec::new();
    for session in scope.asked.clone() {
        let root = scope.ascend(session).await?;
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    if let Some(current) = workspace.context.session.filter(|_| folds) {
        // The current session may be of another tree, or gone: it is not what is asked for.
        let _ = scope.ascend(current).await;
    }
    for root in roots {
        let tree = scope.read(root).await?;
        draw::tree(workspace, &tree, wanted).await?;
    }
    Ok(())
}

/// What a session waits for, in words.
pub fn state_name(tip: &Snapshot) -> String {
    StateView::of(tip).to_string()
}

/// All names, by session.
pub async fn names(bucket: &Bucket) -> Result<HashMap<SessionId, Vec<String>>, Error> {
    let mut names: HashMap<SessionId, Vec<String>> = HashMap::new();
    for (name, session) in bucket.refs().await? {
        names.entry(session).or_default().push(name);
    }
    Ok(names)
}

/// The sessions that have a name like `pattern`, oldest first.
fn named(names: &HashMap<SessionId, Vec<String>>, pattern: &str) -> Result<Vec<SessionId>, Error> {
    let like = |names: &[String]| names.iter().any(|name| is_like(name, pattern));
    let mut found: Vec<SessionId> =
        names.iter().filter(|(_, names)| like(names)).map(|(session, _)| *session).collect();
    if found.is_empty() {
        let message = format!("no session is named `{pattern}`");
        return Err(Error::not_found(message, "`pugmark refs` lists the names"));
    }
    found.sort_unstable();
    Ok(found)
}

impl Scope<'_> {
    /// The root of a session's tree. What lies on the way is needed.
    async fn ascend(&mut self, session: SessionId) -> Result<SessionId, Error> {
        let mut manifest = self.bucket.manifest(&session).await?;
        loop {
            self.needed.insert(manifest.session);
            let Some(parent) = &manifest.parent else { return Ok(manifest.session) };
            manifest = match self.bucket.manifest(&parent.session).await {
                Ok(manifest) => manifest,
                // A parent that is gone leaves its forks behind, each the root of its tree.
                Err(pugmark_log::Error::SessionNotFound { .. }) => return Ok(manifest.session),
                Err(error) => return Err(error.into()),
            };
        }
    }

    async fn read(&self, root: SessionId) -> Result<Tree, Error> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut level = vec![(None, root)];
        while !level.is_empty() {
            let read = level.into_iter().map(|(parent, id)| async move {
                Ok::<_, Error>((parent, self.read_node(id).await?))
            });
            let read: Vec<_> = futures::stream::iter(read).buffered(PARALLEL).try_collect().await?;
            level = Vec::new();
            for (parent, found) in read {
                let Some((mut node, forks)) = found else { continue };
                let index = nodes.len();
                if let Some(parent) = parent {
                    let parent: &mut Node = &mut nodes[parent];
                    parent.forks.push(index);
                }
                let (forks, left_out) = self.fold(forks, self.wanted.filters());
                node.left_out = left_out;
                level.extend(forks.into_iter().map(|id| (Some(index), id)));
                nodes.push(node);
            }
        }
        let mut tree = Tree { nodes, hidden: 0 };
        self.filter(&mut tree);
        Ok(tree)
    }

    /// A session and its forks, oldest first; `None` if it was cut short before it came to be.
    async fn read_node(&self, id: SessionId) -> Result<Option<(Node, Vec<SessionId>)>, Error> {
        let bucket = self.bucket;
        let tip = async {
            match bucket.tip(&id, None).await {
                Err(pugmark_log::Error::SessionRemoved { .. }) if !self.asked.contains(&id) => {
                    Ok(None)
                }
                tip => tip.map(Some),
            }
        };
        let read = futures::try_join!(bucket.manifest(&id), tip, bucket.children(&id));
        let (manifest, tip, forks) = match read {
            Ok(read) => read,
            Err(pugmark_log::Error::SessionNotFound { .. }) if !self.asked.contains(&id) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let names = self.names.get(&id).cloned().unwrap_or_default();
        let matches = match &tip {
            Some(tip) => self.matches(&manifest, tip, &names).await?,
            None => false,
        };
        let newest = tip.map(|tip| Newest {
            version: tip.version,
            events: tip.log.count(),
            state: StateView::of(&tip),
            created: tip.created,
        });
        let node = Node {
            newest,
            manifest,
            names,
            matches,
            shown: matches,
            forks: Vec::new(),
            left_out: 0,
        };
        Ok(Some((node, forks)))
    }

    async fn matches(
        &self,
        manifest: &Manifest,
        tip: &Snapshot,
        names: &[String],
    ) -> Result<bool, Error> {
        let Wanted { since, handler, name, .. } = self.wanted;
        if since.is_some_and(|since| tip.created < since) {
            return Ok(false);
        }
        if name.as_ref().is_some_and(|pattern| !names.iter().any(|name| is_like(name, pattern))) {
            return Ok(false);
        }
        match handler {
            Some(wanted) if manifest.handler.as_ref() != Some(wanted) => {
                let last = if tip.last.version == tip.version {
                    StepView::of(tip.step.as_deref())
                } else {
                    let last = tip.last.version;
                    StepView::of(
                        self.bucket.snapshot_named(&tip.session, last).await?.step.as_deref(),
                    )
                };
                Ok(last.is_some_and(|step| step.handler == *wanted))
            }
            _ => Ok(true),
        }
    }

    /// Leaves out forks where there are many, unless `later`: filters have to see them all first.
    fn fold(&self, forks: Vec<SessionId>, later: bool) -> (Vec<SessionId>, usize) {
        if later || !self.folds {
            return (forks, 0);
        }
        forks::choose(forks, &self.needed, |id| self.names.contains_key(id))
    }

    /// Applies the filters, and puts forks in their order.
    fn filter(&self, tree: &mut Tree) {
        let nodes = &mut tree.nodes;
        for index in (0..nodes.len()).rev() {
            let mut forks = std::mem::take(&mut nodes[index].forks);
            forks.retain(|fork| nodes[*fork].shown);
            nodes[index].shown |= !forks.is_empty();
            if self.wanted.filters() {
                let ids = forks.iter().map(|fork| nodes[*fork].manifest.session).collect();
                let (kept, left_out) = self.fold(ids, false);
                let kept: HashSet<SessionId> = kept.into_iter().collect();
                forks.retain(|fork| kept.contains(&nodes[*fork].manifest.session));
                nodes[index].left_out = left_out;
            }
            let forked_at = |node: &Node| node.manifest.parent.as_ref().map_or(0, |p| p.version);
            forks.sort_by_key(|fork| (forked_at(&nodes[*fork]), nodes[*fork].manifest.session));
            nodes[index].forks = forks;
        }
        tree.hidden = nodes.iter().filter(|node| !node.shown && node.newest.is_some()).count();
    }
}

/// Whether a name is like a pattern, in which `*` stands for any characters.
fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && is_like(&rest[at..], tail))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (name, pattern) in
            [("a-1", "a-*"), ("a", "*"), ("", "*"), ("abc", "a*c"), ("abc", "*b*"), ("x", "x")]
        {
            assert!(is_like(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [("a-1", "a-"), ("ab", "b*"), ("abd", "a*c"), ("x", "")] {
            assert!(!is_like(name, pattern), "{name} {pattern}");
        }
    }
}

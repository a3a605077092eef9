use std::collections::HashMap;

use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::error::Error;
use crate::open::Workspace;
use crate::output::to_stdout;

/// How many sessions are looked at at a time.
const PARALLEL: usize = 32;

/// List the bucket's sessions, newest first
///
/// A line each: `*` for the current one, the id, when it was created, and its names.
#[derive(Args)]
pub struct Sessions {
    /// At most this many
    #[arg(short = 'n', long, value_name = "COUNT")]
    limit: Option<usize>,
}

impl Sessions {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let mut names: HashMap<_, Vec<String>> = HashMap::new();
        for (name, session) in workspace.bucket.refs().await? {
            names.entry(session).or_default().push(name);
        }
        let bucket = &workspace.bucket;
        let mut sessions = bucket
            .sessions()
            .map_ok(|id| async move { Ok((id, bucket.has_session(&id).await?)) })
            .try_buffered(PARALLEL)
            .try_filter_map(|(id, exists)| futures::future::ready(Ok(exists.then_some(id))))
            .boxed();
        let mut left = self.limit.unwrap_or(usize::MAX);
        while left > 0 {
            let Some(id) = sessions.try_next().await? else { break };
            left -= 1;
            let mark = if workspace.context.session == Some(id) { '*' } else { ' ' };
            let named = names.get(&id).map(|names| format!("  {}", names.join(", ")));
            let created = id.created();
            to_stdout(|out| writeln!(out, "{mark} {id}  {created}{}", named.unwrap_or_default()))?;
        }
        Ok(())
    }
}

use std::collections::BTreeMap;

use clap::Args;
use pugmark_log::{Bucket, Digest, Snapshot};

use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{is_json, note, to_json, to_stdout};
use crate::stored::{Stored, Which};
use crate::view::SessionOnly;

/// Create a new root session and make it the current one
///
/// Prints the session's id.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark start\n  \
    pugmark start --handler triage --meta team=core\n  \
    session=$(pugmark start)")]
pub struct Start {
    /// The name of the handler that picks the session up
    ///
    /// If `pugmark handlers` has it, the session is pinned to its newest version, or to the one
    /// after an `@`; with NAME@latest it follows the name. Else the name is for `run --handler`.
    #[arg(long, value_name = "NAME[@VERSION]", add = completion::handlers(true))]
    handler: Option<String>,

    /// Free names and values; the handler sees them
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = key_value)]
    metadata: Vec<(String, String)>,
}

impl Start {
    pub async fn run(self, mut workspace: Workspace) -> Result<(), Error> {
        let metadata: BTreeMap<String, String> = self.metadata.into_iter().collect();
        let pin = match &self.handler {
            Some(text) => Some(Pin::of(&workspace.bucket, text).await?),
            None => None,
        };
        let snapshot = start(&workspace.bucket, pin, metadata).await?;
        workspace.switch_to(snapshot.session)?;
        if is_json() {
            return to_json(&SessionOnly { session: snapshot.session });
        }
        to_stdout(|out| writeln!(out, "{}", snapshot.session))?;
        Ok(())
    }
}

/// The handler of a new session.
pub struct Pin {
    /// Its name.
    pub name: String,
    /// The component that it is, if it is to stay that.
    pub component: Option<Digest>,
}

impl Pin {
    /// What `--handler` asks for.
    async fn of(bucket: &Bucket, text: &str) -> Result<Self, Error> {
        let stored = Stored::parse(text)?;
        if stored.which != Which::Own {
            let found = stored.find(bucket).await?;
            let component = (stored.which != Which::Latest).then_some(found.component);
            return Ok(Self { name: stored.name, component });
        }
        // A name of a handler that is given to `run` may be any text.
        let found = match bucket.latest_handler(&stored.name).await {
            Err(pugmark_log::Error::InvalidHandlerName { .. }) => None,
            other => other?,
        };
        if found.is_none() && !bucket.handlers().await?.is_empty() {
            note(&format!("`{text}` is no handler of this bucket: `run` is to be given one"));
        }
        Ok(Self { name: stored.name, component: found.map(|found| found.component) })
    }
}

/// Creates a root session.
pub async fn start(
    bucket: &Bucket,
    pin: Option<Pin>,
    metadata: BTreeMap<String, String>,
) -> Result<Snapshot, Error> {
    Ok(match pin {
        Some(Pin { name, component: Some(component) }) => {
            bucket.start_pinned(name, component, metadata).await?
        }
        Some(Pin { name, component: None }) => bucket.start(Some(name), metadata).await?,
        None => bucket.start(None, metadata).await?,
    })
}

/// Parses `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    if key.is_empty() {
        return Err("the key is empty".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

use std::collections::BTreeMap;

use clap::Args;

use crate::error::Error;
use crate::open::Workspace;
use crate::output::{is_json, to_json, to_stdout};
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
    #[arg(long, value_name = "NAME")]
    handler: Option<String>,

    /// Free names and values; the handler sees them
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = key_value)]
    metadata: Vec<(String, String)>,
}

impl Start {
    pub async fn run(self, mut workspace: Workspace) -> Result<(), Error> {
        let metadata: BTreeMap<String, String> = self.metadata.into_iter().collect();
        let snapshot = workspace.bucket.start(self.handler, metadata).await?;
        workspace.switch_to(snapshot.session)?;
        if is_json() {
            return to_json(&SessionOnly { session: snapshot.session });
        }
        to_stdout(|out| writeln!(out, "{}", snapshot.session))?;
        Ok(())
    }
}

/// Parses `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    if key.is_empty() {
        return Err("the key is empty".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

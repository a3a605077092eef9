//! The commands.

mod cat;
mod compile_component;
mod context;
mod fork;
mod link;
mod log;
mod objects;
mod pull;
mod push;
mod refs;
mod run;
mod sessions;
mod start;
mod stat;
mod switch;
mod tree;
mod unlink;

use std::process::ExitCode;

use clap::Subcommand;
use pugmark_log::{Digest, Entry, Snapshot};

use crate::error::Error;
use crate::open::Workspace;

/// One of the commands.
#[derive(Subcommand)]
pub enum Command {
    Start(start::Start),
    Sessions(sessions::Sessions),
    Switch(switch::Switch),
    Context(context::ShowContext),
    Push(push::Push),
    Log(log::Log),
    Objects(objects::Objects),
    Cat(cat::Cat),
    Stat(stat::Stat),
    Pull(pull::Pull),
    Fork(fork::Fork),
    Run(run::Run),
    Link(link::Link),
    Refs(refs::Refs),
    Unlink(unlink::Unlink),
    CompileComponent(compile_component::CompileComponent),
}

impl Command {
    /// Runs the command on the bucket that `-b` names, or else the context's.
    pub fn run(self, bucket: Option<&str>) -> Result<ExitCode, Error> {
        match self {
            Self::Start(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Sessions(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Switch(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Context(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Push(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Log(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Objects(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Cat(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Stat(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Pull(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Fork(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Run(command) => command.run(Workspace::open(bucket)?),
            Self::Link(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Refs(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Unlink(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::CompileComponent(command) => command.run(),
        }
    }
}

/// Runs a command that talks to the bucket alone. Local files need no runtime and no thread.
fn plain<F>(bucket: Option<&str>, command: impl FnOnce(Workspace) -> F) -> Result<ExitCode, Error>
where
    F: Future<Output = Result<(), Error>>,
{
    let workspace = Workspace::open(bucket)?;
    futures::executor::block_on(command(workspace)).map(|()| ExitCode::SUCCESS)
}

/// The newest entry of the object whose hash begins with `text`, in a snapshot's log.
///
/// # Errors
/// If there is none, or several.
async fn find_entry(
    workspace: &Workspace,
    snapshot: &Snapshot,
    text: &str,
) -> Result<Entry, Error> {
    let digits = hash_digits(text)?;
    let mut found = workspace.bucket.find_entries(&snapshot.log, &digits, 2).await?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Error::not_found(
            format!(
                "no object of session {} at version {} has the hash `{text}`",
                snapshot.session, snapshot.version
            ),
            "`pugmark objects` lists them",
        )),
        _ => Err(Error::invalid(
            format!("several objects have a hash that begins with `{text}`"),
            "give more digits; `pugmark objects` lists them",
        )),
    }
}

/// The hexadecimal digits of a hash or of its beginning, with or without `sha256:`.
fn hash_digits(text: &str) -> Result<String, Error> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    if (4..=64).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(digits);
    }
    let message = format!("`{text}` is not a hash or the beginning of one");
    Err(Error::invalid(message, "give at least 4 of its hexadecimal digits"))
}

/// The body of an entry, for one small enough to be held.
async fn body_of(workspace: &Workspace, entry: &Entry) -> Result<bytes::Bytes, Error> {
    match entry.data() {
        Some(data) => Ok(data.clone()),
        None => Ok(workspace.bucket.get_object(&entry.hash()).await?),
    }
}

/// The digest that a whole hash stands for.
fn whole_digest(text: &str) -> Option<Digest> {
    hash_digits(text).ok().and_then(|digits| format!("sha256:{digits}").parse().ok())
}

//! The commands.

mod build;
mod bundle;
mod cat;
mod compile_component;
mod completions;
mod context;
mod diff;
mod draw;
mod fork;
mod forks;
mod gc;
mod handlers;
mod inspect;
mod link;
mod log;
mod man;
mod new;
mod objects;
mod pin;
mod pull;
mod push;
mod refs;
mod replay;
mod rm;
mod run;
mod sessions;
mod skills;
mod snapshots;
mod start;
mod stat;
mod switch;
mod tree;
mod unbundle;
mod unlink;
mod verify;

use std::process::ExitCode;

use clap::Subcommand;
use pugmark_log::{Digest, Entry, Snapshot};

use crate::error::Error;
use crate::open::Workspace;
use crate::stores::is_remote;

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
    New(new::New),
    Build(build::Build),
    Inspect(inspect::Inspect),
    Handlers(handlers::Handlers),
    Link(link::Link),
    Refs(refs::Refs),
    Unlink(unlink::Unlink),
    Diff(diff::Diff),
    Replay(replay::Replay),
    Bundle(bundle::Bundle),
    Unbundle(unbundle::Unbundle),
    Pin(pin::PinSessions),
    Verify(verify::Verify),
    Gc(gc::Gc),
    Rm(rm::Rm),
    Skills(skills::Skills),
    Completions(completions::Completions),
    Man(man::Man),
    CompileComponent(compile_component::CompileComponent),
    InitializeJavascript(build::javascript::initialize::InitializeJavascript),
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
            Self::New(command) => command.run(),
            Self::Build(command) => command.run(),
            Self::Inspect(command) => command.run(bucket),
            Self::Handlers(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Link(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Refs(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Unlink(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Diff(command) => judging(bucket, |workspace| command.run(workspace)),
            Self::Replay(command) => command.run(bucket),
            Self::Bundle(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Unbundle(command) => command.run(bucket),
            Self::Pin(command) => command.run(bucket),
            Self::Verify(command) => judging(bucket, |workspace| command.run(workspace)),
            Self::Gc(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Rm(command) => plain(bucket, |workspace| command.run(workspace)),
            Self::Skills(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(),
            Self::CompileComponent(command) => command.run(),
            Self::InitializeJavascript(command) => command.run(),
        }
    }
}

/// Runs a command that talks to the bucket alone.
fn plain<F>(bucket: Option<&str>, command: impl FnOnce(Workspace) -> F) -> Result<ExitCode, Error>
where
    F: Future<Output = Result<(), Error>>,
{
    judging(bucket, |workspace| {
        let ended = command(workspace);
        async move { ended.await.map(|()| ExitCode::SUCCESS) }
    })
}

/// [`plain`] for a command whose exit code says something.
fn judging<F>(bucket: Option<&str>, command: impl FnOnce(Workspace) -> F) -> Result<ExitCode, Error>
where
    F: Future<Output = Result<ExitCode, Error>>,
{
    let workspace = Workspace::open(bucket)?;
    let remote = is_remote(&workspace.context.bucket);
    on_runtime(remote, command(workspace))
}

/// Waits for something that the bucket of `workspace` has to say.
pub fn block_on<T>(
    workspace: &Workspace,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    on_runtime(is_remote(&workspace.context.bucket), answer)
}

/// Local files need no runtime and no thread; a network does.
fn on_runtime<T>(remote: bool, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    if !remote {
        return futures::executor::block_on(answer);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| pugmark_runtime::Error::Io {
        action: "start a runtime".into(),
        source,
    })?;
    runtime.block_on(answer)
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

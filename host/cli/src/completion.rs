//! What a shell may complete: sessions, names, objects and handlers of the current bucket.
//!
//! A shell asks with `PUGMARK_COMPLETE` in the environment. It is answered or, after a moment, left
//! without candidates; it never sees an error.

use std::ffi::{OsStr, OsString};
use std::sync::mpsc;
use std::time::Duration;

use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use futures::{StreamExt as _, TryStreamExt as _};

use crate::Cli;
use crate::commands::block_on;
use crate::context::Context;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{escape_line, human_size};
use crate::stored::label;

/// The variable that a shell asks with; its value is the shell's name.
pub const VARIABLE: &str = "PUGMARK_COMPLETE";
/// How long somebody waits for candidates.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many sessions are offered, the newest; names are all offered.
const SESSIONS: usize = 100;
/// How many objects are offered, the newest.
const OBJECTS: u64 = 64;
/// Digits of a hash that are offered.
const HASH_DIGITS: usize = 12;

/// Answers a shell that asks for candidates, and ends; returns if none asks.
pub fn answer() {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
    }
}

/// Completes a session: its names, then ids.
pub fn sessions() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| candidates(current, true))
}

/// Completes a session's name.
pub fn names() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| candidates(current, false))
}

/// Completes a handler of the bucket: its names, and with versions if wanted.
pub fn handlers(with_versions: bool) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let typed = current.to_string_lossy().into_owned();
        in_time(move |workspace| handler_candidates(workspace, &typed, with_versions))
    })
}

/// Completes the hash of an object of the current session.
pub fn hashes() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let typed = current.to_string_lossy().into_owned();
        in_time(move |workspace| hash_candidates(workspace, &typed))
    })
}

fn candidates(current: &OsStr, with_ids: bool) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy().into_owned();
    in_time(move |workspace| session_candidates(workspace, &typed, with_ids))
}

/// What `find` finds in the bucket that the command line names, unless it takes too long.
fn in_time(
    find: impl FnOnce(&Workspace) -> Result<Vec<CompletionCandidate>, Error> + Send + 'static,
) -> Vec<CompletionCandidate> {
    if !Context::exists() {
        return Vec::new();
    }
    let (done, found) = mpsc::channel();
    std::thread::spawn(move || {
        let bucket = bucket_of(std::env::args_os());
        let found = Workspace::open(bucket.as_deref()).and_then(|workspace| find(&workspace));
        let _ = done.send(found.unwrap_or_default());
    });
    found.recv_timeout(PATIENCE).unwrap_or_default()
}

/// The bucket that the command line so far names, or else the environment.
fn bucket_of(arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let mut arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        if argument == "-b" || argument == "--bucket" {
            return arguments.next();
        }
        if let Some(url) = argument.strip_prefix("--bucket=") {
            return Some(url.to_owned());
        }
    }
    std::env::var("PUGMARK_BUCKET").ok()
}

fn session_candidates(
    workspace: &Workspace,
    typed: &str,
    with_ids: bool,
) -> Result<Vec<CompletionCandidate>, Error> {
    block_on(workspace, async {
        let refs = workspace.bucket.refs().await?;
        let named = refs.into_iter().filter(|(name, _)| name.starts_with(typed));
        let mut found: Vec<_> =
            named.map(|(name, session)| candidate(&name, &session.to_string())).collect();
        if with_ids {
            let ids = workspace.bucket.sessions();
            let ids =
                ids.try_filter(|id| futures::future::ready(id.to_string().starts_with(typed)));
            let ids: Vec<_> = ids.take(SESSIONS).try_collect().await?;
            found
                .extend(ids.iter().map(|id| candidate(&id.to_string(), &id.created().to_string())));
        }
        Ok(found)
    })
}

fn handler_candidates(
    workspace: &Workspace,
    typed: &str,
    with_versions: bool,
) -> Result<Vec<CompletionCandidate>, Error> {
    let found = block_on(workspace, async { Ok(workspace.bucket.handlers().await?) })?;
    let mut offered: Vec<(String, String)> = Vec::new();
    for version in found.iter().rev() {
        let help = format!("{} {}", human_size(version.size), version.created);
        if offered.iter().all(|(name, _)| *name != version.name) {
            offered.push((version.name.clone(), help.clone()));
            if with_versions {
                let follows = "the newest, whenever it runs".to_owned();
                offered.push((format!("{}@latest", version.name), follows));
            }
        }
        if with_versions {
            offered.push((label(version), help));
        }
    }
    let matching = offered.into_iter().filter(|(name, _)| name.starts_with(typed));
    Ok(matching.map(|(name, help)| candidate(&name, &help)).collect())
}

fn hash_candidates(workspace: &Workspace, typed: &str) -> Result<Vec<CompletionCandidate>, Error> {
    let prefix = if typed.starts_with("sha256:") { "sha256:" } else { "" };
    block_on(workspace, async {
        let log = workspace.snapshot(None).await?.log;
        let newest = log.count().saturating_sub(OBJECTS)..log.count();
        let entries: Vec<_> = workspace.bucket.entries(&log, newest, None).try_collect().await?;
        let offered = entries.iter().rev().map(|entry| {
            let digits: String = entry.hash().hex().chars().take(HASH_DIGITS).collect();
            let name = entry.attributes().name.as_deref().unwrap_or_default();
            let help = format!("{} {}", human_size(entry.size()), escape_line(name));
            (format!("{prefix}{digits}"), help)
        });
        let matching = offered.filter(|(hash, _)| hash.starts_with(typed));
        Ok(matching.map(|(hash, help)| candidate(&hash, help.trim_end())).collect())
    })
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.to_owned().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_bucket_from_the_command_line() {
        let bucket = |words: &[&str]| bucket_of(words.iter().map(OsString::from));
        assert_eq!(bucket(&["pugmark", "-b", "s3://x", "log"]).as_deref(), Some("s3://x"));
        assert_eq!(bucket(&["pugmark", "log", "--bucket=/y"]).as_deref(), Some("/y"));
    }
}

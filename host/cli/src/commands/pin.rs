use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use pugmark_log::{SessionId, Snapshot};
use serde::Serialize;

use crate::bundles::{self, BundleLimits};
use crate::commands::block_on;
use crate::completion;
use crate::environment::System;
use crate::error::{Error, exit};
use crate::open::Workspace;
use crate::output::{is_json, note, to_json, to_stdout};
use crate::pins::{Pin, Pins, digest};

/// Keep sessions in a folder, as bundles that have to stay what they are
///
/// A session's bundle is named as the session is: by its name, or the end of its id. `pins.json`
/// says what each is. `pugmark replay DIR` then replays them all, anywhere, and fails if one is not
/// as it was pinned. A pin that would change is left as it is, with exit code 20, unless --accept is
/// given.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark pin tests/pins triage-bug triage-spam\n  \
    pugmark pin --accept tests/pins triage-bug\n  \
    pugmark replay tests/pins")]
pub struct PinSessions {
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The sessions and, after a colon, their last version [default: the current one, the newest]
    #[arg(value_name = "SESSION[:VERSION]", add = completion::sessions())]
    sessions: Vec<String>,

    /// Put the sessions in place of what is pinned under their names; without sessions, take the
    /// bundles of the folder as they are
    #[arg(long)]
    accept: bool,

    #[command(flatten)]
    limits: BundleLimits,
}

/// What became of a pin, as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    name: &'a str,
    change: &'static str,
    session: SessionId,
    version: u64,
}

/// What becomes of a pin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    Same,
    Accepted,
    Refused,
}

impl PinSessions {
    pub fn run(self, bucket: Option<&str>) -> Result<ExitCode, Error> {
        std::fs::create_dir_all(&self.folder).map_err(|source| Error::File {
            action: "make",
            path: self.folder.display().to_string(),
            source,
        })?;
        let pins = Pins::read(&self.folder)?.unwrap_or_else(|| Pins::none(&self.folder));
        if self.accept && self.sessions.is_empty() {
            return self.accept_files(pins);
        }
        let workspace = Workspace::open(bucket)?;
        block_on(&workspace, self.pin(&workspace, pins))
    }

    async fn pin(&self, workspace: &Workspace, mut pins: Pins) -> Result<ExitCode, Error> {
        let mut chosen = Vec::new();
        for session in &self.sessions {
            let snapshot = workspace.snapshot(Some(session)).await?;
            chosen.push((name_of(workspace, session, &snapshot).await?, snapshot));
        }
        if chosen.is_empty() {
            let snapshot = workspace.snapshot(None).await?;
            chosen.push((short(&snapshot), snapshot));
        }
        let mut code = ExitCode::SUCCESS;
        for (name, snapshot) in &chosen {
            if self.pin_one(workspace, &mut pins, name, snapshot).await? == Change::Refused {
                code = ExitCode::from(exit::DIFFERENT);
            }
        }
        Ok(code)
    }

    async fn pin_one(
        &self,
        workspace: &Workspace,
        pins: &mut Pins,
        name: &str,
        snapshot: &Snapshot,
    ) -> Result<Change, Error> {
        // Beside the folder's bundles until it is known to be wanted.
        let made = tempfile::Builder::new()
            .prefix(".pin-")
            .tempfile_in(&self.folder)
            .map_err(|source| self.failed("write in", source))?
            .into_temp_path();
        bundles::write(&workspace.bucket, std::slice::from_ref(snapshot), &made).await?;
        let pin = Pin::of(snapshot, digest(&made)?);
        let before = pins.pins.get(name);
        let change = match before {
            None => Change::New,
            Some(before) if *before == pin => Change::Same,
            Some(_) if self.accept => Change::Accepted,
            Some(_) => Change::Refused,
        };
        show(name, change, &pin, before)?;
        if change != Change::Refused {
            made.persist(pins.file(name)).map_err(|error| self.failed("write in", error.error))?;
            pins.pins.insert(name.to_owned(), pin);
            pins.write()?;
        }
        Ok(change)
    }

    /// Makes an index of the bundles that are there.
    fn accept_files(&self, mut pins: Pins) -> Result<ExitCode, Error> {
        let before = std::mem::take(&mut pins.pins);
        for name in pins.files()? {
            let path = pins.file(&name);
            let opened = bundles::open(&path, self.limits.limits())?;
            let asked: Vec<_> = opened.contents.asked().collect();
            let [held] = asked[..] else {
                let message = format!("`{}` holds {} sessions", path.display(), asked.len());
                return Err(Error::invalid(message, "a pin is a bundle of one session"));
            };
            let bucket = opened.bucket(Arc::new(System));
            let snapshot = bucket.snapshot_named(&held.session, held.version);
            let snapshot = futures::executor::block_on(snapshot)?;
            let pin = Pin::of(&snapshot, digest(&path)?);
            let change = match before.get(&name) {
                None => Change::New,
                Some(before) if *before == pin => Change::Same,
                Some(_) => Change::Accepted,
            };
            show(&name, change, &pin, before.get(&name))?;
            pins.pins.insert(name, pin);
        }
        pins.write()?;
        Ok(ExitCode::SUCCESS)
    }

    fn failed(&self, action: &'static str, source: std::io::Error) -> Error {
        Error::File { action, path: self.folder.display().to_string(), source }
    }
}

/// The name that a session has in the folder: the one it was asked for by, if that is a name.
async fn name_of(workspace: &Workspace, asked: &str, snapshot: &Snapshot) -> Result<String, Error> {
    let text = asked.rsplit_once(':').map_or(asked, |(session, _)| session);
    match workspace.bucket.find_ref(text).await {
        Ok(Some(_)) => Ok(text.to_owned()),
        Ok(None) | Err(pugmark_log::Error::InvalidRefName { .. }) => Ok(short(snapshot)),
        Err(error) => Err(error.into()),
    }
}

/// The last digits of a session's id: those before are the time, and much alike.
fn short(snapshot: &Snapshot) -> String {
    let id = snapshot.session.to_string();
    id[id.len() - 12..].to_owned()
}

fn show(name: &str, change: Change, pin: &Pin, before: Option<&Pin>) -> Result<(), Error> {
    let word = match change {
        Change::New => "new",
        Change::Same => "unchanged",
        Change::Accepted => "accepted",
        Change::Refused => "changed",
    };
    let (session, version) = (pin.session, pin.version);
    if is_json() {
        return to_json(&View { name, change: word, session, version });
    }
    to_stdout(|out| writeln!(out, "{word:<9}  {name}  {session}:{version}"))?;
    if let (Change::Refused, Some(before)) = (change, before) {
        note(&format!(
            "{name} is pinned as {}:{}, {} events; `pugmark pin --accept` replaces it",
            before.session, before.version, before.events
        ));
    }
    Ok(())
}

/// The bundles to replay that a path stands for: itself, or all that are pinned in a folder.
///
/// # Errors
/// If something in the folder is not as it was pinned: then the second list says what.
pub fn pinned(path: &Path) -> Result<(Vec<PathBuf>, Vec<String>), Error> {
    if !path.is_dir() {
        return Ok((vec![path.to_owned()], Vec::new()));
    }
    let pins = Pins::read(path)?.ok_or_else(|| {
        Error::not_found(
            format!("nothing is pinned in `{}`", path.display()),
            "`pugmark pin DIR SESSION` pins a session",
        )
    })?;
    let changes = pins.changes()?;
    let files = pins.pins.keys().map(|name| pins.file(name)).filter(|file| file.exists());
    Ok((files.collect(), changes))
}

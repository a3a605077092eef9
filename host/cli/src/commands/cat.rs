use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use pugmark_log::{Digest, Entry};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::commands::{body_of, find_entry, whole_digest};
use crate::completion;
use crate::error::Error;
use crate::json_text;
use crate::open::Workspace;
use crate::output::{escape, human_size, is_json, on_terminal, to_json, to_stdout};
use crate::pager;
use crate::progress::Progress;
use crate::style::{Style, paint};
use crate::view::EntryView;

/// Bodies of fewer bytes are read ahead when a whole log is printed.
const READ_AHEAD_UNTIL: u64 = 1024 * 1024;
/// How many of them.
const PARALLEL: usize = 8;

/// Print the body of an object, or of every event of a session
///
/// With a hash, prints that body as it is stored. Without one, prints the bodies of the whole log in
/// order, each ending in a line break.
///
/// On a terminal, JSON is spread over lines, control characters are spelled out, and a body that is
/// not text is refused; --raw prints what is stored, as it is without a terminal. With --json, a
/// document for each body has what describes it and `json`, `text` or `base64`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark cat 7b1be4ff\n  \
    pugmark cat\n  \
    pugmark cat -s code-review:3 | jq -r .kind\n  \
    pugmark cat --json | jq 'select(.name == \"report.json\").json'")]
pub struct Cat {
    /// The object's hash, or the beginning of it
    #[arg(value_name = "HASH", add = completion::hashes())]
    hash: Option<String>,

    /// The bytes as they are stored, on a terminal, too
    #[arg(long)]
    raw: bool,

    /// The session and, after a colon, the version [default: the current session's newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]", add = completion::sessions())]
    session: Option<String>,
}

/// What is known of a body.
#[derive(Serialize)]
#[serde(untagged)]
enum Described<'a> {
    Entry(Box<EntryView<'a>>),
    Object { hash: Digest, size: usize },
}

impl<'a> Described<'a> {
    fn of(entry: &'a Entry, position: Option<u64>) -> Self {
        Self::Entry(Box::new(EntryView::of(entry, position)))
    }
}

/// A body as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    #[serde(flatten)]
    described: Described<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl<'a> View<'a> {
    fn of(described: Described<'a>, body: &'a [u8]) -> Self {
        let mut view = Self { described, json: None, text: None, base64: None };
        match std::str::from_utf8(body) {
            Err(_) => view.base64 = Some(BASE64.encode(body)),
            Ok(text) if json_text::is_json(text) => {
                view.json = RawValue::from_string(json_text::compact(text)).ok();
            }
            Ok(text) => view.text = Some(text),
        }
        view
    }
}

impl Cat {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let for_person = on_terminal() && !self.raw;
        if for_person {
            pager::want();
        }
        let Some(hash) = &self.hash else { return self.whole_log(&workspace, for_person).await };
        if is_json() {
            return self.one_as_json(&workspace, hash).await;
        }
        let digest = self.find(&workspace, hash).await?;
        let body = match digest {
            Found::Inline(entry) if for_person => body_of(&workspace, &entry).await?,
            Found::Inline(entry) => {
                let body = body_of(&workspace, &entry).await?;
                return Ok(to_stdout(|out| out.write_all(&body))?);
            }
            Found::Object(digest) if for_person => workspace.bucket.get_object(&digest).await?,
            Found::Object(digest) => return copy(&workspace, &digest).await.map(|_| ()),
        };
        let text = readable(&body).ok_or_else(|| {
            Error::invalid(
                format!("`{hash}` is not text, but {} of bytes", human_size(body.len() as u64)),
                "`pugmark pull` saves it to a file; --raw prints it all the same",
            )
        })?;
        let shown = if json_text::is_json(&text) {
            json_text::pretty(&escape(&text), |key| paint(Style::Code, key))
        } else {
            escape(&text)
        };
        to_stdout(|out| write_line(out, shown.as_bytes()))?;
        Ok(())
    }

    /// Where the body with a hash is. An object of its own needs no session to be found.
    async fn find(&self, workspace: &Workspace, hash: &str) -> Result<Found, Error> {
        if let Some(digest) = whole_digest(hash)
            && workspace.bucket.has_object(&digest).await?
        {
            return Ok(Found::Object(digest));
        }
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        let entry = find_entry(workspace, &snapshot, hash).await?;
        Ok(match entry.data() {
            Some(_) => Found::Inline(Box::new(entry)),
            None => Found::Object(entry.hash()),
        })
    }

    async fn one_as_json(&self, workspace: &Workspace, hash: &str) -> Result<(), Error> {
        let entry = async {
            let snapshot = workspace.snapshot(self.session.as_deref()).await?;
            find_entry(workspace, &snapshot, hash).await
        };
        match (entry.await, whole_digest(hash)) {
            (Ok(entry), _) => {
                let body = body_of(workspace, &entry).await?;
                to_json(&View::of(Described::of(&entry, None), &body))
            }
            (Err(_), Some(digest)) if workspace.bucket.has_object(&digest).await? => {
                let body = workspace.bucket.get_object(&digest).await?;
                let described = Described::Object { hash: digest, size: body.len() };
                to_json(&View::of(described, &body))
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn whole_log(&self, workspace: &Workspace, for_person: bool) -> Result<(), Error> {
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        let entries = workspace.bucket.entries(&snapshot.log, 0..snapshot.log.count(), None);
        let mut read = entries
            .map_ok(|entry| async move {
                let soon = entry.size() < READ_AHEAD_UNTIL;
                let body = match entry.data() {
                    Some(data) => Some(data.clone()),
                    None if soon => Some(workspace.bucket.get_object(&entry.hash()).await?),
                    None => None,
                };
                Ok((entry, body))
            })
            .try_buffered(PARALLEL)
            .boxed_local();
        let mut position = 0;
        while let Some((entry, body)) = read.try_next().await? {
            if is_json() {
                let body = whole(workspace, &entry, body).await?;
                let described = Described::of(&entry, Some(position));
                to_json(&View::of(described, &body))?;
            } else if for_person {
                let body = whole(workspace, &entry, body).await?;
                let line = match readable(&body) {
                    Some(text) => escape(&text),
                    None => paint(Style::Dim, &placeholder(&entry)),
                };
                to_stdout(|out| write_line(out, line.as_bytes()))?;
            } else if let Some(body) = body {
                to_stdout(|out| write_line(out, &body))?;
            } else if copy(workspace, &entry.hash()).await? != Some(b'\n') {
                to_stdout(|out| out.write_all(b"\n"))?;
            }
            position += 1;
        }
        Ok(())
    }
}

enum Found {
    Inline(Box<Entry>),
    Object(Digest),
}

async fn whole(workspace: &Workspace, entry: &Entry, body: Option<Bytes>) -> Result<Bytes, Error> {
    match body {
        Some(body) => Ok(body),
        None => Ok(workspace.bucket.get_object(&entry.hash()).await?),
    }
}

/// A body that a person can read.
fn readable(body: &Bytes) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    (!text.contains('\0')).then(|| text.to_owned())
}

fn placeholder(entry: &Entry) -> String {
    format!("({} of bytes, {})", human_size(entry.size()), entry.hash())
}

/// Writes what ends in a line break, or is made to.
fn write_line(out: &mut dyn std::io::Write, body: &[u8]) -> std::io::Result<()> {
    out.write_all(body)?;
    if body.ends_with(b"\n") { Ok(()) } else { out.write_all(b"\n") }
}

/// Copies an object to standard output piece by piece, and returns its last byte.
async fn copy(workspace: &Workspace, digest: &Digest) -> Result<Option<u8>, Error> {
    let mut body = workspace.bucket.read_object(digest).await?;
    let progress = (!on_terminal()).then(|| Progress::new("reading", body.size));
    let mut last = None;
    while let Some(piece) = body.stream.try_next().await? {
        last = piece.last().copied();
        to_stdout(|out| out.write_all(&piece))?;
        if let Some(progress) = &progress {
            progress.add(piece.len());
        }
    }
    Ok(last)
}

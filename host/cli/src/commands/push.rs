use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use pugmark_log::{Attributes, Draft, Entry};
use serde::Serialize;

use crate::commands::start::key_value;
use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{escape_line, is_json, note, to_json, to_stdout};
use crate::progress::Progress;
use crate::view::{EntryView, Point, kind_name};

/// Append events to a session
///
/// Without files, the event's body is read from standard input. Files are appended together, in
/// one version, each under its own name. Prints a line for each event: its hash, and its name.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark push <<<'{\"kind\":\"user_message\",\"text\":\"hi\"}'\n  \
    pugmark push report.json data.csv\n  \
    pugmark push --name greeting hello.txt\n  \
    pugmark push --id order-4711 order.json")]
pub struct Push {
    /// Files to append; `-` is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The event's name, in place of the file's
    #[arg(long)]
    name: Option<String>,

    /// The body's media type, in place of the one that its name or form suggests
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,

    /// Free names and values
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = key_value)]
    metadata: Vec<(String, String)>,

    /// Append nothing if this was pushed before under the same id
    ///
    /// Any text that names this push: with it, a push may be repeated until it is known to have
    /// succeeded. Other content under the same id is refused.
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// The session to append to [default: the current one]
    #[arg(short, long, value_name = "SESSION", add = completion::sessions())]
    session: Option<String>,
}

/// A version that was pushed, as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    #[serde(flatten)]
    point: Point,
    kind: &'static str,
    /// Whether it was pushed before; then the version is one whose log holds it.
    repeated: bool,
    objects: Vec<EntryView<'a>>,
}

impl Push {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        if self.name.is_some() && self.files.len() > 1 {
            return Err(Error::invalid(
                "--name names one event, and there are several files",
                None,
            ));
        }
        let session = workspace.session(self.session.as_deref()).await?;
        let mut drafts = Vec::new();
        if self.files.is_empty() {
            drafts.push(draft(Path::new("-"))?);
        }
        for file in &self.files {
            drafts.push(draft(file)?);
        }
        for draft in &mut drafts {
            let attributes = &mut draft.attributes;
            attributes.metadata.extend(self.metadata.iter().cloned());
            attributes.name = self.name.clone().or(attributes.name.take());
            attributes.content_type = self.content_type.clone().or(attributes.content_type.take());
        }
        let total = drafts.iter().map(|draft| draft.body.len() as u64).sum();
        let progress = Progress::new("storing", total);
        let bucket = &workspace.bucket;
        let (made, repeated) = match &self.id {
            None => (bucket.push(&session, None, &drafts).await?, false),
            Some(id) => {
                let pushed = bucket.push_once(&session, None, id, &drafts).await?;
                (pushed.snapshot, pushed.repeated)
            }
        };
        drop(progress);
        let entries: Vec<Entry> = if repeated {
            note("pushed before: nothing was appended");
            drafts.iter().map(Draft::build).collect::<Result<_, _>>()?
        } else {
            made.objects.clone()
        };
        if is_json() {
            return to_json(&View {
                point: Point::of(&made),
                kind: kind_name(made.kind),
                repeated,
                objects: entries.iter().map(|entry| EntryView::of(entry, None)).collect(),
            });
        }
        to_stdout(|out| {
            for entry in &entries {
                match &entry.attributes().name {
                    Some(name) => writeln!(out, "{}  {}", entry.hash(), escape_line(name))?,
                    None => writeln!(out, "{}", entry.hash())?,
                }
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// An event from a file, under the file's name; or from standard input, without a name.
pub fn draft(file: &Path) -> Result<Draft, Error> {
    let unreadable =
        |source| Error::File { action: "read", path: file.display().to_string(), source };
    if file == Path::new("-") {
        let mut body = Vec::new();
        std::io::stdin().lock().read_to_end(&mut body).map_err(unreadable)?;
        let content_type = Some(sniff(&body).to_owned());
        return Ok(Draft::push(body, Attributes { content_type, ..Attributes::default() }));
    }
    let body = std::fs::read(file).map_err(unreadable)?;
    let by_name = mime_guess::from_path(file).first_raw();
    let attributes = Attributes {
        name: file.file_name().map(|name| name.to_string_lossy().into_owned()),
        content_type: Some(by_name.unwrap_or_else(|| sniff(&body)).to_owned()),
        ..Attributes::default()
    };
    Ok(Draft::push(body, attributes))
}

/// The media type that a body's own form suggests.
fn sniff(body: &[u8]) -> &'static str {
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
    match std::str::from_utf8(body) {
        Ok(_) if is_json => "application/json",
        Ok(_) => "text/plain; charset=utf-8",
        Err(_) => "application/octet-stream",
    }
}

use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use clap::Args;
use futures::TryStreamExt as _;
use pugmark_log::{Digest, Entry};
use serde::Serialize;

use crate::commands::find_entry;
use crate::completion;
use crate::error::Error;
use crate::open::Workspace;
use crate::output::{escape, is_json, to_json, to_stdout};
use crate::progress::Progress;

/// Save an object's body to a file
///
/// Prints the file's path. Without -o, the file is made under the event's own name in this folder,
/// and is never put in place of one that exists.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark pull 7b1be4ff -o file.json\n  \
    pugmark pull 7b1be4ff")]
pub struct Pull {
    /// The object's hash, or the beginning of it
    #[arg(value_name = "HASH", add = completion::hashes())]
    hash: String,

    /// The file; one that exists is replaced once the body has arrived whole
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The session and, after a colon, the version [default: the current session's newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]", add = completion::sessions())]
    session: Option<String>,
}

/// A file that was saved, as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    path: &'a str,
    hash: Digest,
    size: u64,
}

impl Pull {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        let entry = find_entry(&workspace, &snapshot, &self.hash).await?;
        let path = match &self.output {
            Some(path) => {
                self.replace(&workspace, &entry, path).await?;
                path.display().to_string()
            }
            None => create_named(&workspace, &entry).await?,
        };
        if is_json() {
            return to_json(&View { path: &path, hash: entry.hash(), size: entry.size() });
        }
        to_stdout(|out| writeln!(out, "{}", escape(&path)))?;
        Ok(())
    }

    async fn replace(
        &self,
        workspace: &Workspace,
        entry: &Entry,
        path: &Path,
    ) -> Result<(), Error> {
        let failed =
            |source| Error::File { action: "write", path: path.display().to_string(), source };
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut file = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(folder)
            .map_err(failed)?;
        copy(workspace, entry, file.as_file_mut()).await?.map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// Makes a file of the event's own name. The name comes from whoever pushed it: the file is opened
/// below this folder, whatever the name says.
async fn create_named(workspace: &Workspace, entry: &Entry) -> Result<String, Error> {
    let name = entry.attributes().name.as_deref().unwrap_or_default();
    let plain = Path::new(name).components().count() == 1
        && Path::new(name).file_name().is_some_and(|file| file == name);
    if !plain {
        let message = format!("the event's name, `{}`, is not a file's", escape(name));
        return Err(Error::invalid(message, "say where to save it with -o FILE"));
    }
    let failed = |source| Error::File { action: "create", path: escape(name), source };
    let folder = Dir::open_ambient_dir(".", ambient_authority()).map_err(failed)?;
    let options = OpenOptions::new().write(true).create_new(true).clone();
    let mut file = folder.open_with(name, &options).map_err(failed)?;
    let copied = copy(workspace, entry, &mut file).await;
    if !matches!(copied, Ok(Ok(()))) {
        // Nothing half-written stays under a good name; the error below is the one to report.
        let _ = folder.remove_file(name);
    }
    copied?.map_err(failed)?;
    Ok(name.to_owned())
}

/// Writes an entry's body. The outer error is the bucket's, the inner one the file's.
async fn copy(
    workspace: &Workspace,
    entry: &Entry,
    file: &mut impl io::Write,
) -> Result<io::Result<()>, Error> {
    if let Some(data) = entry.data() {
        return Ok(file.write_all(data));
    }
    let mut body = workspace.bucket.read_object(&entry.hash()).await?;
    let progress = Progress::new("reading", body.size);
    while let Some(piece) = body.stream.try_next().await? {
        progress.add(piece.len());
        if let Err(error) = file.write_all(&piece) {
            return Ok(Err(error));
        }
    }
    Ok(file.flush())
}

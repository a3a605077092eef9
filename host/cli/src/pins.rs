//! A folder of pinned bundles and the index that says what each must be: `pins.json`, to be read by
//! people and compared in reviews.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pugmark_log::{Digest, Hasher, SessionId, Snapshot};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The index's name.
const INDEX: &str = "pins.json";
/// The ending of a bundle's name.
const ENDING: &str = ".pug";
/// The newest format that this program can read, and the one that it writes.
const FORMAT: u32 = 1;

/// What is pinned in a folder. The field order is the persisted order.
#[derive(Serialize, Deserialize)]
pub struct Pins {
    format: u32,
    /// The pins by name: `NAME.pug` is the bundle.
    pub pins: BTreeMap<String, Pin>,
    #[serde(skip)]
    folder: PathBuf,
}

/// What a pinned bundle must be. The field order is the persisted order.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The session.
    pub session: SessionId,
    /// Its newest version in the bundle.
    pub version: u64,
    /// How many events its log has.
    pub events: u64,
    /// The component that made that version, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Digest>,
    /// The digest of the bundle's file.
    pub bundle: Digest,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    component: Option<Digest>,
}

impl Pin {
    /// A pin of a session up to a version, whose bundle has this digest.
    pub fn of(snapshot: &Snapshot, bundle: Digest) -> Self {
        let step = snapshot.step.as_ref().and_then(|step| serde_json::from_str(step.get()).ok());
        Self {
            session: snapshot.session,
            version: snapshot.version,
            events: snapshot.log.count(),
            component: step.and_then(|step: Step| step.component),
            bundle,
        }
    }
}

impl Pins {
    /// What is pinned in a folder; `None` if nothing ever was.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(INDEX);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|source| failed("read", &path, source))?,
        };
        let invalid = |reason: String| {
            let message = format!("`{}` is not an index of pins: {reason}", path.display());
            Error::invalid(message, "take it from your version control, or `pin --accept` anew")
        };
        let pins: Self =
            serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
        if pins.format > FORMAT {
            return Err(invalid(format!("format {} needs a newer pugmark", pins.format)));
        }
        if let Some(name) = pins.pins.keys().find(|name| !is_name(name)) {
            return Err(invalid(format!("`{name}` is not a name")));
        }
        Ok(Some(Self { folder: folder.to_owned(), ..pins }))
    }

    /// No pins yet.
    pub fn none(folder: &Path) -> Self {
        Self { format: FORMAT, pins: BTreeMap::new(), folder: folder.to_owned() }
    }

    /// The bundle of a pin.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{ENDING}"))
    }

    /// The names of bundles in the folder, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn files(&self) -> Result<Vec<String>, Error> {
        let unread = |source| failed("read", &self.folder, source);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(unread)? {
            let name = entry.map_err(unread)?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(ENDING));
            names.extend(name.filter(|name| is_name(name)).map(str::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// What is not as it was pinned: a line each.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn changes(&self) -> Result<Vec<String>, Error> {
        let files = self.files()?;
        let mut changes = Vec::new();
        for (name, pin) in &self.pins {
            if !files.contains(name) {
                changes.push(format!("{name}: its bundle is missing"));
            } else if digest(&self.file(name))? != pin.bundle {
                changes.push(format!("{name}: its bundle is not the one that was pinned"));
            }
        }
        let unknown = files.iter().filter(|name| !self.pins.contains_key(*name));
        changes.extend(unknown.map(|name| format!("{name}: there is a bundle, but no pin")));
        Ok(changes)
    }

    /// Writes the index in place of the one before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self) -> Result<(), Error> {
        let path = self.folder.join(INDEX);
        let mut text = serde_json::to_vec_pretty(self).map_err(|source| Error::Json { source })?;
        text.push(b'\n');
        let write = || {
            let mut file = tempfile::Builder::new()
                .permissions(fs::Permissions::from_mode(0o644))
                .tempfile_in(&self.folder)?;
            file.write_all(&text)?;
            file.persist(&path).map_err(|error| error.error).map(|_| ())
        };
        write().map_err(|source| failed("write", &path, source))
    }
}

/// Names are files' names: letters, digits and a few signs, as those of sessions.
fn is_name(name: &str) -> bool {
    pugmark_log::layout::reference(name).is_ok()
}

/// The digest of a file.
///
/// # Errors
/// If it cannot be read.
pub fn digest(path: &Path) -> Result<Digest, Error> {
    let unread = |source| failed("read", path, source);
    let mut file = File::open(path).map_err(unread)?;
    let (mut hasher, mut piece) = (Hasher::default(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece).map_err(unread)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&piece[..read]),
        }
    }
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::File { action, path: path.display().to_string(), source }
}

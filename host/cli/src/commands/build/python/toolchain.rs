//! Where componentize-py is: on PATH, in a virtual environment of the project's, or in one that this
//! program makes for the user, once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::commands::build::source::Source;
use crate::commands::build::{file, tool};
use crate::context::tools_dir;
use crate::error::Error;
use crate::output::note;

/// The version that is installed.
const VERSION: &str = "0.25.0";

/// The versions that do: what is in the component is made for their Python, 3.14.
const SERIES: &str = "0.25.";

const PROGRAM: &str = "componentize-py";

/// Where virtual environments of projects are, beside the script or in the folder one is in.
const VENVS: [&str; 2] = [".venv", "venv"];

const WAY_OUT: &str = "install Python 3.10 or later with its `venv` and `pip`, or put \
                       componentize-py 0.25 on PATH: `pip install componentize-py==0.25.0`";

/// What builds.
pub struct Toolchain {
    /// The program.
    pub componentize: PathBuf,
    /// The Python that it is installed for, which has pip.
    pub python: PathBuf,
}

impl Toolchain {
    /// Finds it, or installs it. `venv` is looked into first.
    ///
    /// # Errors
    /// If it is nowhere and cannot be installed.
    pub fn find(source: &Source, venv: Option<&Path>) -> Result<Self, Error> {
        let beside = source.path.parent().unwrap_or(Path::new(""));
        let folders = venv.map(Path::to_owned).into_iter();
        let folders = folders.chain(VENVS.iter().flat_map(|name| [beside.join(name), name.into()]));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let found = folders.map(|folder| folder.join("bin")).chain(path).find_map(Self::in_folder);
        match found {
            Some(found) => Ok(found),
            None => Self::own(source),
        }
    }

    /// The one in a folder of programs, if it is of the right version.
    fn in_folder(folder: PathBuf) -> Option<Self> {
        let componentize = folder.join(PROGRAM);
        if !componentize.is_file() {
            return None;
        }
        let said = Command::new(&componentize).arg("--version").output().ok()?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let version = said.split_whitespace().last().unwrap_or_default();
        if !version.starts_with(SERIES) {
            let place = componentize.display();
            note(&format!("passing over `{place}`: it is version {version}, not {SERIES}x"));
            return None;
        }
        // A link leads to the environment that it is installed in.
        let home = fs::canonicalize(&componentize).ok()?;
        let python = home.parent()?.join("python");
        let python = if python.exists() { python } else { "python3".into() };
        Some(Self { componentize, python })
    }

    /// The user's own, which is made if it is not there.
    fn own(source: &Source) -> Result<Self, Error> {
        let tools = tools_dir()?;
        fs::create_dir_all(&tools).map_err(|error| file("make", &tools, error))?;
        let lock = tools.join("lock");
        let held = File::create(&lock).and_then(|held| held.lock().map(|()| held));
        let _held = held.map_err(|error| file("lock", &lock, error))?;
        let venv = tools.join(format!("{PROGRAM}-{VERSION}"));
        let done = venv.join("done");
        if !done.is_file() {
            install(source, &venv)?;
            File::create(&done).map_err(|error| file("write", &done, error))?;
        }
        Self::in_folder(venv.join("bin")).ok_or_else(|| {
            let reason = format!("`{}` does not work", venv.display());
            tool::failed(source, reason, Some("remove it: it is made anew then".to_owned()))
        })
    }
}

fn install(source: &Source, venv: &Path) -> Result<(), Error> {
    note(&format!(
        "{PROGRAM} is not on PATH: installing {VERSION} from PyPI into {}, once",
        venv.display()
    ));
    match fs::remove_dir_all(venv) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(file("remove", venv, error));
        }
        _ => {}
    }
    let mut make = Command::new("python3");
    tool::run(source, make.args(["-m", "venv"]).arg(venv), WAY_OUT)?;
    let python = venv.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.arg(format!("{PROGRAM}=={VERSION}"));
    tool::run(source, &mut pip, WAY_OUT).map(drop)
}

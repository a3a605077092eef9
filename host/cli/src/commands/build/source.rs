//! What there is to build, and what it is written in.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use pugmark_runtime::sandbox::is_wasm;
use serde::Deserialize;

use super::file;
use crate::error::Error;

/// What a handler is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// A Cargo package.
    Rust,
    /// A script.
    Python,
    /// A module, typed or not.
    JavaScript,
    /// A core module or component that others have built.
    WebAssembly,
}

impl Language {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::WebAssembly => "webassembly",
        }
    }

    /// What a file of this name is written in.
    fn of_file(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "py" => Some(Self::Python),
            "js" | "mjs" | "ts" | "mts" => Some(Self::JavaScript),
            "wasm" => Some(Self::WebAssembly),
            _ => None,
        }
    }
}

/// The files that a folder's language is told by, in this order.
const IN_FOLDERS: [(&str, Language); 4] = [
    ("Cargo.toml", Language::Rust),
    ("handler.py", Language::Python),
    ("handler.js", Language::JavaScript),
    ("handler.ts", Language::JavaScript),
];

/// What there is to build.
pub struct Source {
    /// The file: of a Cargo package, its Cargo.toml.
    pub path: PathBuf,
    /// What it is written in.
    pub language: Language,
}

impl Source {
    /// Finds out what `path` is.
    ///
    /// # Errors
    /// If there is nothing, or nothing that can be built.
    pub fn find(path: &Path) -> Result<Self, Error> {
        let metadata = fs::metadata(path).map_err(|error| file("read", path, error))?;
        if metadata.is_dir() {
            return Self::in_folder(path);
        }
        let found = if path.file_name().is_some_and(|name| name == "Cargo.toml") {
            Some(Language::Rust)
        } else if begins_as_wasm(path) {
            Some(Language::WebAssembly)
        } else {
            Language::of_file(path)
        };
        let Some(language) = found else {
            let message = format!("`{}` is nothing that can be built", path.display());
            let hint = "give a Cargo package, a .py script, a .js or .ts module, or a .wasm file";
            return Err(Error::invalid(message, hint));
        };
        Ok(Self { path: path.to_owned(), language })
    }

    fn in_folder(folder: &Path) -> Result<Self, Error> {
        for (name, language) in IN_FOLDERS {
            let path = folder.join(name);
            if path.is_file() {
                return Ok(Self { path, language });
            }
        }
        if let Some(path) = main_of_package(folder)? {
            return Ok(Self { path, language: Language::JavaScript });
        }
        let names = IN_FOLDERS.map(|(name, _)| name).join(", ");
        Err(Error::not_found(
            format!("there is nothing to build in the folder `{}`", folder.display()),
            format!(
                "it has none of {names}, and no package.json with `main`; give the handler's file itself"
            ),
        ))
    }

    /// What the handler is called where nothing else says: by its file or, if that has the name of
    /// all handlers, by its folder.
    pub fn stem(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem != "handler" {
            return stem;
        }
        let whole = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = whole.parent().and_then(Path::file_name);
        folder.map_or(stem, |name| name.to_string_lossy().into_owned())
    }
}

/// The module that a folder's package.json names as `main`, if there is one.
fn main_of_package(folder: &Path) -> Result<Option<PathBuf>, Error> {
    #[derive(Deserialize)]
    struct Package {
        main: Option<PathBuf>,
    }
    let path = folder.join("package.json");
    let text = match fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| file("read", &path, error))?,
    };
    let package: Package = serde_json::from_slice(&text).map_err(|error| {
        let message = format!("`{}` cannot be understood: {error}", path.display());
        Error::invalid(message, "mend it, or give the handler's file itself")
    })?;
    Ok(package.main.map(|main| folder.join(main)))
}

fn begins_as_wasm(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && is_wasm(&magic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_tells_its_language() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Source::find(folder.path()), Err(Error::NotFound { .. })));
        fs::write(folder.path().join("handler.py"), "").unwrap();
        let source = Source::find(folder.path()).unwrap();
        assert_eq!(source.language, Language::Python);
        let name = folder.path().file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(source.stem(), name);
        fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(Source::find(folder.path()).unwrap().language, Language::Rust);
    }

    #[test]
    fn a_package_names_its_module() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("package.json");
        fs::write(&package, "{").unwrap();
        assert!(matches!(Source::find(folder.path()), Err(Error::Invalid { .. })));
        fs::write(&package, "{}").unwrap();
        assert!(matches!(Source::find(folder.path()), Err(Error::NotFound { .. })));
        fs::write(&package, r#"{"main":"src/agent.js"}"#).unwrap();
        let source = Source::find(folder.path()).unwrap();
        assert_eq!(source.language, Language::JavaScript);
        assert_eq!(source.path, folder.path().join("src/agent.js"));
    }

    #[test]
    fn a_file_tells_its_language() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes, language) in [
            ("agent.py", &b"import pugmark"[..], Language::Python),
            ("agent.ts", b"", Language::JavaScript),
            ("agent", b"\0asm\x01\0\0\0", Language::WebAssembly),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let source = Source::find(&path).unwrap();
            assert_eq!((source.language, source.stem().as_str()), (language, "agent"));
        }
        let path = folder.path().join("agent.rb");
        fs::write(&path, "").unwrap();
        assert!(matches!(Source::find(&path), Err(Error::Invalid { .. })));
    }
}

//! Puts the files that `pugmark new` and `pugmark build` write into the binary: the folder
//! `templates`, and the sources of the SDKs for Rust, Python and JavaScript.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What of the SDK a handler needs.
const SDK: [&str; 4] = ["Cargo.toml", "README.md", "src", "wit"];

/// What of the Python SDK a component holds.
const PYTHON_SDK: [&str; 2] = ["pugmark", "pugmark_component"];

/// What of the JavaScript SDK a handler and a component need.
const JAVASCRIPT_SDK: [&str; 5] =
    ["README.md", "package.json", "index.d.ts", "testing.d.ts", "src"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let sdk = here.join("../../guest-sdk/rust");
    let mut text = String::new();
    table(&mut text, "TEMPLATES", &here.join("templates"), &[""])?;
    table(&mut text, "SDK", &sdk, &SDK)?;
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&out).join("embedded.rs"), text)?;
    let mut text = String::new();
    table(&mut text, "SDK", &here.join("../../guest-sdk/python"), &PYTHON_SDK)?;
    table(&mut text, "WIT", &here.join("../../wit"), &[""])?;
    fs::write(Path::new(&out).join("embedded_python.rs"), text)?;
    let mut text = String::new();
    table(&mut text, "SDK", &here.join("../../guest-sdk/javascript"), &JAVASCRIPT_SDK)?;
    table(&mut text, "WIT", &here.join("../../wit"), &[""])?;
    fs::write(Path::new(&out).join("embedded_javascript.rs"), text)
}

/// A table of the files below `root` by their paths there, in order.
fn table(text: &mut String, name: &str, root: &Path, parts: &[&str]) -> io::Result<()> {
    let mut files = Vec::new();
    for part in parts {
        let path = root.join(part);
        println!("cargo::rerun-if-changed={}", path.display());
        walk(&path, &mut files)?;
    }
    files.sort();
    let _ = writeln!(text, "static {name}: &[(&str, &str)] = &[");
    for file in files {
        let below = file.strip_prefix(root).map_err(io::Error::other)?;
        let (below, file) = (below.to_string_lossy(), file.to_string_lossy());
        let _ = writeln!(text, "    ({below:?}, include_str!({file:?})),");
    }
    text.push_str("];\n");
    Ok(())
}

fn walk(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // Python leaves these behind where the sources are tested.
        if entry.file_name() != "__pycache__" {
            walk(&entry.path(), files)?;
        }
    }
    Ok(())
}

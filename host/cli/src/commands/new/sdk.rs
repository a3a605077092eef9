//! The Rust SDK as a package that stands alone, to be put beside a handler.

use crate::error::Error;

/// The manifest of the workspace that the SDK is part of here.
const WORKSPACE: &str = include_str!("../../../../../Cargo.toml");

/// Where it is put.
const FOLDER: &str = "vendor/pugmark-guest";

/// The SDK's files, for a handler's folder.
///
/// # Errors
/// If its manifest asks for what the workspace's does not say: a defect.
pub fn files(sdk: &[(&str, &str)]) -> Result<Vec<(String, String)>, Error> {
    let mut files = Vec::with_capacity(sdk.len());
    for (path, text) in sdk {
        let text = match *path {
            "Cargo.toml" => alone(text, WORKSPACE)
                .map_err(|reason| pugmark_runtime::Error::Internal { reason })?,
            _ => (*text).to_owned(),
        };
        files.push((format!("{FOLDER}/{path}"), text));
    }
    Ok(files)
}

/// A manifest with what it has of its workspace written out, and without what only the workspace's
/// own developers need.
fn alone(manifest: &str, workspace: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        if section == "[lints]" || section.ends_with("dev-dependencies]") {
            continue;
        }
        let inherited = line.strip_suffix(".workspace = true");
        match inherited {
            None => text.push_str(line),
            Some(key) => {
                let from = match section {
                    "[package]" => "[workspace.package]",
                    _ => "[workspace.dependencies]",
                };
                let said = said_in(workspace, from, key);
                text.push_str(said.ok_or_else(|| format!("{from} does not say `{key}`"))?);
            }
        }
        text.push('\n');
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// The line of a section that sets `key`.
fn said_in<'a>(manifest: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let lines = manifest.lines().skip_while(|line| *line != section).skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    lines.find(|line| line.split_once(" = ").is_some_and(|(name, _)| name == key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_stands_alone() {
        let manifest = "[package]\nname = \"a\"\nversion.workspace = true\n\n[dependencies]\n\
                        serde.workspace = true\n\n[dev-dependencies]\nx.workspace = true\n\n\
                        [lints]\nworkspace = true\n";
        let workspace = "[workspace.package]\nversion = \"1.2.3\"\n\n[workspace.dependencies]\n\
                         serde_json = \"1\"\nserde = { version = \"1\" }\n";
        let expected = "[package]\nname = \"a\"\nversion = \"1.2.3\"\n\n[dependencies]\n\
                        serde = { version = \"1\" }\n";
        assert_eq!(alone(manifest, workspace).unwrap(), expected);
        assert!(alone("[dependencies]\ny.workspace = true", workspace).is_err());
    }

    #[test]
    fn the_sdk_stands_alone() {
        let files = files(super::super::SDK).unwrap();
        let of = |name: &str| {
            let path = format!("{FOLDER}/{name}");
            files.iter().find(|(file, _)| *file == path).map(|(_, text)| text.as_str())
        };
        assert!(of("Cargo.toml").is_some_and(|text| !text.contains("workspace")));
        assert!(of("src/lib.rs").is_some());
        assert!(of("wit/handler.wit").is_some_and(|text| text.contains("package pugmark:handler")));
        assert!(of("wit/deps/wasi-cli/run.wit").is_some());
    }
}

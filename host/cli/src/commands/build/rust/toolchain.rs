//! Which compiler builds for WebAssembly here: the usual one if it has the target, or can have it
//! added; else Debian's, which builds the standard library from its sources.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Part, note, tool};
use crate::commands::build::source::Source;
use crate::error::Error;

const BARE: &str = "wasm32-unknown-unknown";
const WASI1: &str = "wasm32-wasip1";
const WASI2: &str = "wasm32-wasip2";

/// Debian's compiler, and where its C library for WASI is.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_WASI: &str = "/usr/lib/wasm32-wasi";
/// Linkers for WebAssembly by their names in Debian, newest first.
const LINKERS: [&str; 6] =
    ["wasm-ld-22", "wasm-ld-21", "wasm-ld-20", "wasm-ld-19", "wasm-ld-18", "wasm-ld"];

/// How to build for a target.
pub enum Toolchain {
    /// With the compiler that cargo uses anyway.
    Usual { target: String },
    /// With Debian's.
    Debian { target: String, linker: &'static str },
}

impl Toolchain {
    /// Finds one that builds `part`, for the target that the user names or the usual one.
    ///
    /// # Errors
    /// If there is none; says how to get one.
    pub fn find(source: &Source, part: &Part, named: Option<&str>) -> Result<Self, Error> {
        let target = named.unwrap_or(match part {
            Part::Library => BARE,
            Part::Program(_) => WASI2,
        });
        let folder = source.path.parent().unwrap_or(Path::new("."));
        if has_target(folder, target) || add_target(folder, target) {
            return Ok(Self::Usual { target: target.to_owned() });
        }
        // Debian has no C library and no linker for WASI 0.2.
        let target = if named.is_none() && target == WASI2 { WASI1 } else { target };
        match LINKERS.into_iter().find(|linker| tool::is_there(linker)) {
            Some(linker) if debian_has(target) => {
                note(&format!("building with Debian's rustc for {target}"));
                Ok(Self::Debian { target: target.to_owned(), linker })
            }
            _ => Err(missing(source, target)),
        }
    }

    /// Has `cargo rustc` build so. `remapped` are folders and what is to be said in their place.
    pub fn apply(&self, cargo: &mut Command, part: &Part, remapped: &[(PathBuf, &str)]) {
        let mut flags: Vec<String> = remapped
            .iter()
            .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
            .collect();
        let target = match self {
            Self::Usual { target } => target,
            Self::Debian { target, .. } => {
                if let Some(sysroot) = debian_sysroot() {
                    flags.push(format!("--remap-path-prefix={}=/rust", sysroot.display()));
                }
                if target == WASI1 {
                    flags.extend(["-Clink-self-contained=no".to_owned(), "-Clink-arg=-lc".into()]);
                    flags.push(format!("-Clink-arg=-L{DEBIAN_WASI}"));
                }
                target
            }
        };
        cargo.args(["--target", target]);
        // A JSON array of strings is one of TOML, too.
        let flags = serde_json::Value::from(flags);
        cargo.arg("--config").arg(format!("target.{target}.rustflags={flags}"));
        let Self::Debian { linker, .. } = self else { return };
        cargo.arg("--config").arg(format!("target.{target}.linker='{linker}'"));
        cargo.arg("-Zbuild-std=std,panic_abort");
        cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
        if target == WASI1 && matches!(part, Part::Program(_)) {
            cargo.arg("--").arg(format!("-Clink-arg={DEBIAN_WASI}/crt1-command.o"));
        }
    }
}

/// Whether the compiler that cargo uses in this folder has the target's standard library.
fn has_target(folder: &Path, target: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", target]);
    let Some(library) = printed(command.current_dir(folder)) else { return false };
    std::fs::read_dir(library).is_ok_and(|mut files| files.next().is_some())
}

/// Has rustup add the target to the toolchain of this folder; whether it is there then.
fn add_target(folder: &Path, target: &str) -> bool {
    if !tool::is_there("rustup") {
        return false;
    }
    note(&format!("adding the target {target} with rustup"));
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", target]).current_dir(folder);
    printed(&mut rustup).is_some() && has_target(folder, target)
}

fn debian_has(target: &str) -> bool {
    let std = debian_sysroot().map(|root| root.join("lib/rustlib/src/rust/library/std"));
    let libc = target != WASI1 || Path::new(DEBIAN_WASI).join("libc.a").is_file();
    matches!(target, BARE | WASI1) && libc && std.is_some_and(|std| std.is_dir())
}

fn debian_sysroot() -> Option<PathBuf> {
    printed(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"])).map(PathBuf::from)
}

/// What a program prints, if it ends well.
fn printed(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn missing(source: &Source, target: &str) -> Error {
    let mut packages = "rustc-web rust-web-src lld-19".to_owned();
    if target == WASI1 {
        packages.push_str(" wasi-libc");
    }
    let hint = format!(
        "`rustup target add {target}`; on Debian without rustup, `apt-get install \
         --no-install-recommends {packages}`"
    );
    tool::failed(source, format!("the Rust here cannot build for {target}"), Some(hint))
}

//! What a file is and asks for, for whoever wants to know before it runs. Nothing is compiled.

use bytes::Bytes;
use pugmark_log::Digest;
use serde::Serialize;
use wasmparser::{Parser, Payload, ProducersSectionReader};

use super::World;
use super::adapt::{Prepared, prepare};
use super::inspect::{Access, access_to, names_in};
use super::load_error::LoadError;
use super::settings::Settings;

/// What a file is.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether it is a core module, which is made a component before it runs.
    pub is_module: bool,
    /// How it would be called; `None` if it is no handler.
    pub world: Option<World>,
    /// The digest and the length of the component as it would run; `None` if it is no handler.
    pub component: Option<(Digest, u64)>,
    /// What it imports: interfaces of a component as it would run, or else functions of the core
    /// module as `module.field`.
    pub imports: Vec<Import>,
    /// What it exports.
    pub exports: Vec<String>,
    /// What made it, and the core modules in it, as their own sections say. Nobody checks that.
    pub producers: Vec<Producer>,
    /// Why it is no handler.
    pub problem: Option<String>,
}

/// Something that is imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Import {
    /// Its name, with its version.
    pub name: String,
    /// What it would get.
    pub access: Access,
}

/// A tool or a language.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Producer {
    /// What it was for: `language`, `processed-by` or `sdk`.
    pub role: String,
    /// Its name.
    pub name: String,
    /// Its version; may be empty.
    pub version: String,
}

/// Finds out what `bytes` are.
///
/// # Errors
/// If they are not WebAssembly, not valid, or too large.
pub fn report(name: &str, bytes: Bytes, settings: &Settings) -> Result<Report, LoadError> {
    let (is_module, prepared) = match prepare(name, bytes.clone(), settings) {
        Ok(prepared) => (prepared.adapted, Ok(prepared)),
        Err(
            problem @ (LoadError::NoWorld { .. }
            | LoadError::RefusedImports { .. }
            | LoadError::UnknownImports { .. }),
        ) => (is_module(&bytes), Err(problem)),
        Err(error) => return Err(error),
    };
    let invalid = |reason: String| LoadError::Invalid { name: name.to_owned(), reason };
    let runs = prepared.as_ref().map_or(&bytes, |prepared| &prepared.bytes);
    let (mut imports, exports) = names_in(runs).map_err(invalid)?;
    imports.dedup();
    let component =
        |prepared: &Prepared| (Digest::of(&prepared.bytes), prepared.bytes.len() as u64);
    let access = |name: String| Import { access: access_to(&name), name };
    Ok(Report {
        is_module,
        world: prepared.as_ref().ok().map(|prepared| prepared.world),
        component: prepared.as_ref().ok().map(component),
        imports: imports.into_iter().map(access).collect(),
        exports,
        producers: producers(runs).map_err(|error| invalid(error.to_string()))?,
        problem: prepared.err().map(|problem| problem.to_string()),
    })
}

fn is_module(bytes: &[u8]) -> bool {
    Parser::is_core_wasm(bytes)
}

/// What the sections `producers` say, of all that is in it, each once.
fn producers(bytes: &[u8]) -> Result<Vec<Producer>, wasmparser::BinaryReaderError> {
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let Payload::CustomSection(section) = payload? else { continue };
        if section.name() != "producers" {
            continue;
        }
        let reader = wasmparser::BinaryReader::new(section.data(), section.data_offset());
        for field in ProducersSectionReader::new(reader)? {
            let field = field?;
            for value in field.values {
                let value = value?;
                found.push(Producer {
                    role: field.name.to_owned(),
                    name: value.name.to_owned(),
                    version: value.version.to_owned(),
                });
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(text: &str) -> Report {
        report("x.wasm", wat::parse_str(text).unwrap().into(), &Settings::default()).unwrap()
    }

    #[test]
    fn a_module_is_shown_as_it_would_run() {
        let found = report_of(
            r#"(module
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (func (export "_start") (call $exit (i32.const 0)))
            (@producers (language "Wat" "1")))"#,
        );
        assert!(found.is_module);
        assert_eq!(found.world, Some(World::Command));
        assert!(found.exports.iter().any(|export| export.starts_with("wasi:cli/run@0.2.")));
        let exit = found.imports.iter().find(|import| import.name.starts_with("wasi:cli/exit@"));
        assert_eq!(exit.unwrap().access, Access::Served);
        let wat = Producer { role: "language".into(), name: "Wat".into(), version: "1".into() };
        assert!(found.producers.contains(&wat), "{:?}", found.producers);
        assert_eq!(found.problem, None);
    }

    #[test]
    fn what_would_be_refused_is_shown() {
        let found = report_of(
            r#"(component
            (import "wasi:keyvalue/store@0.2.0" (instance))
            (import "wasi:filesystem/types@0.2.6" (instance))
            (import "wasi:http/outgoing-handler@0.2.6" (instance))
            (instance $i) (export "wasi:cli/run@0.2.0" (instance $i)))"#,
        );
        let accesses: Vec<Access> = found.imports.iter().map(|import| import.access).collect();
        assert_eq!(accesses, [Access::Refused, Access::Denied, Access::AllowHttp]);
        assert_eq!((found.world, found.component), (None, None));
        assert!(found.problem.unwrap().contains("wasi:keyvalue/store@0.2.0"));
    }

    #[test]
    fn a_library_is_no_handler() {
        let found = report_of(r#"(module (import "env" "f" (func)) (func (export "add")))"#);
        assert!(found.is_module);
        assert_eq!(found.exports, ["add"]);
        assert_eq!(found.imports[0].name, "env.f");
        assert!(found.problem.is_some());
    }
}

//! What a file is and asks for, read off its bytes before anything is compiled.
//!
//! Looks at names only; the compiler validates. Interfaces come in three classes: served, there but
//! denying, and refused, which is every other one.

use serde::Serialize;
use wasmparser::{Chunk, ComponentTypeRef, Encoding, ExternalKind, Parser, Payload, TypeBounds};

use super::World;
use super::load_error::LoadError;

/// Interfaces that work, without their versions.
pub(super) const SERVED: [&str; 19] = [
    "pugmark:handler/types",
    "pugmark:handler/objects",
    "pugmark:handler/session",
    "pugmark:handler/log",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:http/types",
    "wasi:http/outgoing-handler",
];

/// Interfaces that language runtimes import and that deny every call, without their versions.
pub(super) const DENIED: [&str; 14] = [
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:filesystem/types",
    "wasi:filesystem/preopens",
    "wasi:sockets/network",
    "wasi:sockets/instance-network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
    "wasi:sockets/ip-name-lookup",
];

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A component that can run.
    Component(World),
    /// A core module, to be made a component.
    Module(Module),
}

/// What matters of a core module.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Module {
    /// What it imports: module and field.
    pub imports: Vec<(String, String)>,
    /// Names of the functions it exports.
    pub exports: Vec<String>,
    /// Whether it says in a custom section what its component's types are.
    pub typed: bool,
}

/// Whether a file that begins with `bytes` is WebAssembly, a component or a core module.
#[must_use]
pub fn is_wasm(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm")
}

/// Finds out what `bytes` are.
///
/// # Errors
/// If they are not WebAssembly, or a component that is no handler or asks for what is not served.
pub(super) fn inspect(name: &str, bytes: &[u8]) -> Result<Shape, LoadError> {
    if !is_wasm(bytes) {
        return Err(LoadError::NotWasm { name: name.to_owned(), reason: what_instead(bytes) });
    }
    let mut found = Names::default();
    let component = match read(bytes, &mut found) {
        Ok(Encoding::Component) => true,
        Ok(Encoding::Module) => false,
        Err(reason) => return Err(LoadError::Invalid { name: name.to_owned(), reason }),
    };
    if !component {
        return Ok(Shape::Module(found.module));
    }
    let world = world_of(&found.exports).ok_or_else(|| LoadError::NoWorld {
        name: name.to_owned(),
        hint: hint(&found.exports),
        found: found.exports.clone(),
    })?;
    let refused: Vec<String> =
        found.imports.into_iter().filter(|import| access_to(import) == Access::Refused).collect();
    if refused.is_empty() {
        Ok(Shape::Component(world))
    } else {
        Err(LoadError::RefusedImports { name: name.to_owned(), names: refused })
    }
}

/// What a file that is not WebAssembly may be.
fn what_instead(bytes: &[u8]) -> &'static str {
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return "it is compiled code (.cwasm), which is never run as it is handed over; \
                give the .wasm that it was compiled from";
    }
    let text = bytes.trim_ascii_start();
    if text.starts_with(b"(module") || text.starts_with(b"(component") {
        return "it is WebAssembly text; make it binary first (`wasm-tools parse`)";
    }
    "it does not begin with the bytes `\\0asm`"
}

/// The names at the top level of a component or a module.
#[derive(Default)]
struct Names {
    imports: Vec<String>,
    exports: Vec<String>,
    module: Module,
}

/// Reads the top level only: nested modules and code are skipped.
fn read(bytes: &[u8], found: &mut Names) -> Result<Encoding, String> {
    let message = |error: wasmparser::BinaryReaderError| error.to_string();
    let mut parser = Parser::new(0);
    let mut rest = bytes;
    let mut encoding = Encoding::Module;
    loop {
        let (mut consumed, payload) = match parser.parse(rest, true).map_err(message)? {
            Chunk::Parsed { consumed, payload } => (consumed, payload),
            Chunk::NeedMoreData(_) => return Err("it is cut short".to_owned()),
        };
        match payload {
            Payload::Version { encoding: version, .. } => encoding = version,
            Payload::ModuleSection { unchecked_range: range, .. }
            | Payload::ComponentSection { unchecked_range: range, .. } => consumed += range.len(),
            Payload::CodeSectionStart { size, .. } => {
                parser.skip_section();
                consumed += size as usize;
            }
            Payload::End(_) => return Ok(encoding),
            payload => note(payload, found).map_err(message)?,
        }
        rest = rest.get(consumed..).ok_or("it is cut short")?;
    }
}

/// Takes down the names that one section holds.
fn note(payload: Payload<'_>, found: &mut Names) -> Result<(), wasmparser::BinaryReaderError> {
    match payload {
        Payload::ComponentImportSection(section) => {
            for import in section {
                let import = import?;
                // A type that equals another one is an abbreviation, nothing that is asked for.
                if !matches!(import.ty, ComponentTypeRef::Type(TypeBounds::Eq(_))) {
                    found.imports.push(import.name.name.to_owned());
                }
            }
        }
        Payload::ComponentExportSection(section) => {
            for export in section {
                found.exports.push(export?.name.name.to_owned());
            }
        }
        Payload::ImportSection(section) => {
            for import in section.into_imports() {
                let import = import?;
                let names = (import.module.to_owned(), import.name.to_owned());
                found.module.imports.push(names);
            }
        }
        Payload::ExportSection(section) => {
            for export in section {
                let export = export?;
                if export.kind == ExternalKind::Func {
                    found.module.exports.push(export.name.to_owned());
                }
            }
        }
        Payload::CustomSection(section) if section.name().starts_with("component-type") => {
            found.module.typed = true;
        }
        _ => {}
    }
    Ok(())
}

/// The world of a component with these exports; the typed one if it has both.
fn world_of(exports: &[String]) -> Option<World> {
    let has = |prefix: &str| exports.iter().any(|export| export.starts_with(prefix));
    if has("pugmark:handler/step@0.1.") {
        Some(World::Typed)
    } else if has("wasi:cli/run@0.2.") {
        Some(World::Command)
    } else {
        None
    }
}

/// What would make a handler of a component with these exports.
pub(super) fn hint(exports: &[String]) -> String {
    let has = |prefix: &str| exports.iter().any(|export| export.starts_with(prefix));
    let text = if has("wasi:cli/run@0.3.") {
        "it is a program for WASI 0.3 (`wasi:cli/run@0.3`), which is not served yet; \
         build it for WASI 0.2"
    } else if has("wasi:cli/run") {
        "it is a program for a version of WASI that is not served; build it for WASI 0.2"
    } else if has("pugmark:handler/step") {
        "it is made for a version of `pugmark:handler/step` that is not served; this is 0.1"
    } else if has("wasi:http/") {
        "it is an HTTP server; a handler exports `pugmark:handler/step@0.1.0` or \
         `wasi:cli/run@0.2.0`"
    } else {
        "a handler exports `pugmark:handler/step@0.1.0` or `wasi:cli/run@0.2.0`"
    };
    text.to_owned()
}

/// What an import gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// It works.
    Served,
    /// It works for the hosts that whoever runs it allows, and denies every other call.
    #[serde(rename = "allow-http")]
    AllowHttp,
    /// It is there, and denies every call.
    Denied,
    /// It is not there: what asks for it is not loaded.
    Refused,
}

/// What an import of a component gets.
pub(super) fn access_to(import: &str) -> Access {
    let Some((interface, version)) = import.split_once('@') else { return Access::Refused };
    let series = if interface.starts_with("wasi:") { "0.2." } else { "0.1." };
    if !version.starts_with(series) {
        Access::Refused
    } else if interface == "wasi:http/outgoing-handler" {
        Access::AllowHttp
    } else if SERVED.contains(&interface) {
        Access::Served
    } else if DENIED.contains(&interface) {
        Access::Denied
    } else {
        Access::Refused
    }
}

/// The names that a component, or a core module, imports and exports.
///
/// # Errors
/// If it is not valid; says why.
pub(super) fn names_in(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), String> {
    let mut found = Names::default();
    if read(bytes, &mut found)? == Encoding::Component {
        return Ok((found.imports, found.exports));
    }
    let Module { imports, exports, .. } = found.module;
    let imports = imports.into_iter().map(|(from, field)| format!("{from}.{field}"));
    Ok((imports.collect(), exports))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn component(body: &str) -> Result<Shape, LoadError> {
        inspect("x.wasm", &wat::parse_str(format!("(component {body})")).unwrap())
    }

    /// A component that exports an empty instance under each name.
    fn exporting(names: &[&str]) -> String {
        let mut text = String::new();
        for (index, name) in names.iter().enumerate() {
            let _ = write!(text, "(instance $i{index}) (export \"{name}\" (instance $i{index}))");
        }
        text
    }

    const RUN: &str = "wasi:cli/run@0.2.3";
    const STEP: &str = "pugmark:handler/step@0.1.0";

    #[test]
    fn tells_worlds_by_exports_and_typed_wins() {
        assert_eq!(component(&exporting(&[RUN])).unwrap(), Shape::Component(World::Command));
        assert_eq!(component(&exporting(&[STEP])).unwrap(), Shape::Component(World::Typed));
        assert_eq!(component(&exporting(&[RUN, STEP])).unwrap(), Shape::Component(World::Typed));
    }

    #[test]
    fn exports_of_nested_components_do_not_count() {
        let nested = format!("(component {})", exporting(&[RUN]));
        let error = component(&nested).unwrap_err();
        assert!(matches!(error, LoadError::NoWorld { found, .. } if found.is_empty()));
    }

    #[test]
    fn says_what_is_missing() {
        for (export, part) in [
            ("wasi:cli/run@0.3.0", "WASI 0.3"),
            ("pugmark:handler/step@0.2.0", "this is 0.1"),
            ("wasi:http/incoming-handler@0.2.0", "HTTP server"),
            ("my:own/thing@1.0.0", "a handler exports"),
        ] {
            let error = component(&exporting(&[export])).unwrap_err();
            let LoadError::NoWorld { found, hint, .. } = error else { panic!("{error}") };
            assert_eq!(found, [export]);
            assert!(hint.contains(part), "{hint}");
        }
    }

    #[test]
    fn refuses_imports_by_name() {
        let imports = [
            "wasi:io/poll@0.2.6",
            "wasi:filesystem/types@0.2.0",
            "wasi:http/outgoing-handler@0.2.0",
            "wasi:keyvalue/store@0.2.0",
            "wasi:io/poll@0.3.0",
            "wasi:io/poll",
            "plain",
        ];
        let mut text = exporting(&[RUN]);
        for import in imports {
            text = format!("(import \"{import}\" (instance)) {text}");
        }
        let error = component(&text).unwrap_err();
        let LoadError::RefusedImports { mut names, .. } = error else { panic!("{error}") };
        names.reverse();
        assert_eq!(names, imports[3..]);
    }

    #[test]
    fn reads_a_module_and_skips_its_code() {
        let text = r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
            (func (export "_start") (nop))
            (memory (export "memory") 1)
            (@custom "component-type:x" "y"))"#;
        let shape = inspect("x.wasm", &wat::parse_str(text).unwrap()).unwrap();
        let expected = Module {
            imports: vec![("wasi_snapshot_preview1".into(), "fd_write".into())],
            exports: vec!["_start".into()],
            typed: true,
        };
        assert_eq!(shape, Shape::Module(expected));
    }

    #[test]
    fn what_is_not_wasm_is_said_so() {
        for (bytes, part) in [
            (&b"#!/bin/sh\n"[..], "does not begin"),
            (b"", "does not begin"),
            (b"\n(module)", "wasm-tools parse"),
        ] {
            let error = inspect("x", bytes).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        let whole = wat::parse_str("(module (memory 1))").unwrap();
        let error = inspect("x", &whole[..whole.len() - 1]).unwrap_err();
        assert!(matches!(error, LoadError::Invalid { .. }), "{error}");
    }
}

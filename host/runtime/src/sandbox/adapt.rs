//! Makes core modules components, so that the sandbox runs one kind only.
//!
//! A module for `wasm32-wasip1` is given the standard adapter; one that embeds its component's
//! types is encoded as it says. The same module gives the same bytes with the same build of this
//! program, and the digest of a handler is that of the component made here.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW1, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::ComponentEncoder;

use super::inspect::{Module, Shape, inspect};
use super::load_error::LoadError;
use super::settings::Settings;
use super::{World, compile};

/// A component that can run.
pub(super) struct Prepared {
    /// The component.
    pub bytes: Bytes,
    /// How it is called.
    pub world: World,
    /// Whether it was a core module.
    pub adapted: bool,
}

/// Which of its two kinds a module of WASI 0.1 is given.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Adapter {
    /// For programs.
    Command,
    /// For libraries.
    Reactor,
}

/// What the bytes of an adapted module depend on besides the module.
pub(super) fn configuration() -> String {
    let command = WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER;
    let reactor = WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;
    format!("adapters of {} and {} bytes, wit-component 0.254", command.len(), reactor.len())
}

/// Makes of `bytes` a component that can run.
///
/// # Errors
/// If they are no handler, ask for what is not served, or are too large.
pub(super) fn prepare(
    name: &str,
    bytes: Bytes,
    settings: &Settings,
) -> Result<Prepared, LoadError> {
    let limit = settings.max_component_bytes;
    let check = |bytes: &[u8]| {
        if bytes.len() as u64 > limit {
            return Err(LoadError::TooLarge { name: name.to_owned(), limit });
        }
        Ok(())
    };
    check(&bytes)?;
    let module = match inspect(name, &bytes)? {
        Shape::Component(world) => return Ok(Prepared { bytes, world, adapted: false }),
        Shape::Module(module) => module,
    };
    let adapter = adapter_for(name, &module)?;
    let component = compile::encode(settings, name, &bytes, adapter)?;
    check(&component)?;
    match inspect(name, &component)? {
        Shape::Component(world) => Ok(Prepared { bytes: component.into(), world, adapted: true }),
        Shape::Module(_) => Err(LoadError::Invalid {
            name: name.to_owned(),
            reason: "it did not become a component".to_owned(),
        }),
    }
}

/// The adapter that a module needs, if it does.
fn adapter_for(name: &str, module: &Module) -> Result<Option<Adapter>, LoadError> {
    let command = module.exports.iter().any(|export| export == "_start");
    let unknown = unknown_imports(module);
    if !unknown.is_empty() {
        return Err(LoadError::UnknownImports { name: name.to_owned(), names: unknown });
    }
    if !command && !module.typed {
        return Err(LoadError::NoWorld {
            name: name.to_owned(),
            found: module.exports.clone(),
            hint: "it is a core module that neither is a program (it exports no `_start`) nor \
                   says what its component's types are; build it for wasm32-wasip1 or wasm32-wasip2"
                .to_owned(),
        });
    }
    let needs_adapter = module.imports.iter().any(|(from, _)| from == PREVIEW1);
    if !needs_adapter && !module.typed {
        return Err(LoadError::NoWorld {
            name: name.to_owned(),
            found: module.exports.clone(),
            hint: "it is a program that imports nothing of WASI, so it can neither read the log \
                   nor write an event"
                .to_owned(),
        });
    }
    let adapter = if command { Adapter::Command } else { Adapter::Reactor };
    Ok(needs_adapter.then_some(adapter))
}

/// Makes a component of a module. It may panic and fill the stack where the module's types are not
/// what the module's own tools write.
pub(super) fn encode(module: &[u8], adapter: Option<Adapter>) -> Result<Vec<u8>, String> {
    // The compiler validates what is made here.
    let encoder = ComponentEncoder::default().validate(false).module(module);
    let encoder = encoder.and_then(|encoder| match adapter {
        Some(Adapter::Command) => encoder.adapter(PREVIEW1, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER),
        Some(Adapter::Reactor) => encoder.adapter(PREVIEW1, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER),
        None => Ok(encoder),
    });
    let made = encoder.and_then(|mut encoder| encoder.encode());
    made.map_err(|error| format!("{error:#}"))
}

/// Imports that neither WASI nor, in a module that embeds its types, an interface explains.
fn unknown_imports(module: &Module) -> Vec<String> {
    let is_known = |from: &str, field: &str| {
        from == PREVIEW1 && is_preview1(field) || module.typed && from != "env" && from != PREVIEW1
    };
    let unknown = module.imports.iter().filter(|(from, field)| !is_known(from, field));
    unknown.map(|(from, field)| format!("{from}.{field}")).collect()
}

/// Whether a field belongs to WASI 0.1 or to its adapter, by its prefix.
fn is_preview1(field: &str) -> bool {
    const PREFIXES: [&str; 12] = [
        "adapter_",
        "args_",
        "clock_",
        "environ_",
        "fd_",
        "path_",
        "poll_",
        "proc_",
        "random_",
        "reset_adapter_",
        "sched_",
        "sock_",
    ];
    PREFIXES.iter().any(|prefix| field.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare_text(text: &str) -> Result<Prepared, LoadError> {
        prepare("x.wasm", wat::parse_str(text).unwrap().into(), &Settings::default())
    }

    const PROGRAM: &str = r#"(module
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func (export "_start") (call $exit (i32.const 0))))"#;

    #[test]
    fn a_program_for_wasip1_becomes_a_command() {
        let first = prepare_text(PROGRAM).unwrap();
        assert_eq!(first.world, World::Command);
        assert!(first.adapted);
        assert_eq!(first.bytes, prepare_text(PROGRAM).unwrap().bytes);
        let again = prepare("x.wasm", first.bytes.clone(), &Settings::default()).unwrap();
        assert!(!again.adapted);
        assert_eq!(again.bytes, first.bytes);
    }

    #[test]
    fn unknown_imports_are_named() {
        let text = r#"(module
            (import "env" "print" (func))
            (import "wasi_snapshot_preview1" "teleport" (func))
            (import "wasi_snapshot_preview1" "fd_close" (func (param i32) (result i32)))
            (func (export "_start")))"#;
        let Err(error) = prepare_text(text) else { panic!("it was accepted") };
        let LoadError::UnknownImports { names, .. } = error else { panic!("{error}") };
        assert_eq!(names, ["env.print", "wasi_snapshot_preview1.teleport"]);
    }

    #[test]
    fn a_library_is_no_handler() {
        for text in ["(module)", r#"(module (func (export "_start")))"#] {
            let error = prepare_text(text).err();
            assert!(matches!(error, Some(LoadError::NoWorld { .. })), "{text}: {error:?}");
        }
    }

    #[test]
    fn what_is_too_large_is_not_looked_at() {
        let settings = Settings { max_component_bytes: 10, ..Settings::default() };
        let error = prepare("x.wasm", vec![0; 11].into(), &settings).err();
        assert!(matches!(error, Some(LoadError::TooLarge { limit: 10, .. })), "{error:?}");
    }
}

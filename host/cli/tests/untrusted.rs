//! Bytes that others made, read by a child that is this program.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use pugmark_log::Kind;
use pugmark_runtime::sandbox::{Sandbox, Settings};

fn sandbox() -> &'static Sandbox {
    static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| {
        let argv = [env!("CARGO_BIN_EXE_pugmark"), "compile-component"].map(OsString::from);
        Sandbox::new(Settings { compiler: Some(argv.into()), ..Settings::default() }).unwrap()
    });
    &SANDBOX
}

/// A small core module that says what its component's types are, and where it says so.
fn module_with_types() -> &'static (Vec<u8>, Range<usize>) {
    static MODULE: LazyLock<(Vec<u8>, Range<usize>)> = LazyLock::new(|| {
        let text = include_str!("../../../tests/guests/wat/name-escapes.wat");
        let mut module = wat::parse_str(text).unwrap();
        let built = "../../target/guests/out/typed-probe.wasm";
        let probe = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(built))
            .expect("tests/build-guests.sh makes it");
        let begin = module.len();
        for payload in wasmparser::Parser::new(0).parse_all(&probe) {
            if let wasmparser::Payload::CustomSection(section) = payload.unwrap()
                && section.name().starts_with("component-type")
            {
                // Before the section's content are its kind and its length, of up to five bytes.
                let content = section.range();
                let header = (1..=6).map(|len| content.start - len).find(|&at| probe[at] == 0);
                module.extend(&probe[header.unwrap()..content.end]);
            }
        }
        let range = begin..module.len();
        (module, range)
    });
    &MODULE
}

#[test]
fn the_module_with_types_is_a_handler_as_it_stands() {
    let (module, range) = module_with_types();
    assert!(range.len() > 500, "{range:?}");
    sandbox().load_bytes("it", module.clone().into()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What a core module says of its types may be anything, and what reads it may fail at it.
    #[test]
    fn damaged_types_are_refused_or_load(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let (module, types) = module_with_types();
        let mut bytes = module.clone();
        for (index, byte) in flips {
            bytes[types.start + index.index(types.len())] = byte;
        }
        let Err(error) = sandbox().load_bytes("it", bytes.into()) else { return Ok(()) };
        prop_assert!(matches!(error.kind(), Kind::Invalid | Kind::Limit), "{}", error);
    }
}

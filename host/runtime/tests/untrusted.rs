//! Bytes that others made: whatever they are, they are refused with an error or mean the same
//! however they arrive, and never a panic.

use std::time::Duration;

use proptest::prelude::*;
use pugmark_log::{SessionId, Timestamp};
use pugmark_runtime::Output;
use pugmark_runtime::protocol::duration;
use pugmark_runtime::protocol::output::{OutputError, OutputLimits, Parser, parse};
use pugmark_runtime::sandbox::{Sandbox, Settings};

const LIMITS: OutputLimits = OutputLimits { line_bytes: 300, total_bytes: 200, outputs: 5 };

fn session() -> SessionId {
    SessionId::new(Timestamp::from_millis(1), [0; 10])
}

fn in_pieces(bytes: &[u8], cuts: &[usize]) -> Result<Vec<Output>, OutputError> {
    let mut parser = Parser::new(LIMITS, session());
    let mut rest = bytes;
    for cut in cuts {
        let (piece, after) = rest.split_at((*cut).min(rest.len()));
        parser.push(piece)?;
        rest = after;
    }
    parser.push(rest)?;
    parser.finish()
}

/// Lines that are nearly right: fields of the protocol with values of all sorts.
fn line() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        Just("data"),
        Just("uri"),
        Just("name"),
        Just("content-type"),
        Just("metadata"),
        Just("fork"),
        Just("session"),
        Just("schema-url"),
        Just("other"),
    ];
    let value = prop_oneof![
        Just("\"MQ==\"".to_owned()),
        Just("\"application/vnd.pugmark.pause+text\"".to_owned()),
        Just("{\"duration\":\"1h2.5s\"}".to_owned()),
        Just("{\"a\":1}".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        "\"[a-z/:]{0,20}\"",
        "[\\[\\]{}\":,0-9a]{0,12}",
    ];
    prop::collection::vec((field, value), 0..5).prop_map(|fields| {
        let fields: Vec<String> =
            fields.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    })
}

proptest! {
    #[test]
    fn output_means_the_same_in_any_pieces(
        lines in prop::collection::vec(prop_oneof![line(), "[ -~]{0,40}"], 0..8),
        cuts in prop::collection::vec(0_usize..60, 0..8),
    ) {
        let bytes = lines.join("\n").into_bytes();
        let whole = parse(&bytes, LIMITS, session());
        prop_assert_eq!(in_pieces(&bytes, &cuts), whole);
    }

    #[test]
    fn any_bytes_are_an_output_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        cuts in prop::collection::vec(0_usize..100, 0..8),
    ) {
        prop_assert_eq!(in_pieces(&bytes, &cuts), parse(&bytes, LIMITS, session()));
    }

    #[test]
    fn durations_read_what_they_write(ns in 0..=duration::MAX.as_nanos()) {
        let time = Duration::from_nanos(u64::try_from(ns).unwrap());
        prop_assert_eq!(duration::parse(&duration::format(time)), Ok(time));
    }

    #[test]
    fn any_text_is_a_duration_or_an_error(text in "[-+.0-9hmsuµn ]{0,30}") {
        let _ = duration::parse(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Loading inspects, adapts and compiles.
    #[test]
    fn damaged_webassembly_is_refused_or_loads(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<Option<prop::sample::Index>>(),
        component in any::<bool>(),
    ) {
        let text = if component {
            r#"(component
                (core module $m (func (export "run") (result i32) (i32.const 0)))
                (core instance $i (instantiate $m))
                (func $run (result (result)) (canon lift (core func $i "run")))
                (instance $r (export "run" (func $run)))
                (export "wasi:cli/run@0.2.0" (instance $r)))"#
        } else {
            r#"(module
                (import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))
                (memory (export "memory") 1)
                (func (export "_start")))"#
        };
        let mut bytes = wat::parse_str(text).unwrap();
        for (index, byte) in flips {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let sandbox = Sandbox::new(Settings::default()).unwrap();
        let _ = sandbox.load_bytes("it", bytes.into());
    }
}

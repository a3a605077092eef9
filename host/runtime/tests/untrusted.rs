//! Bytes that others made: whatever they are, they are refused with an error or mean the same
//! however they arrive, and never a panic.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use pugmark_log::{Attributes, Digest, Draft, SessionId, Timestamp};
use pugmark_runtime::protocol::duration;
use pugmark_runtime::protocol::output::{OutputError, OutputLimits, Parser, parse};
use pugmark_runtime::sandbox::{Component, Limits, Sandbox, Settings, StepSetup};
use pugmark_runtime::{Error, Frame, LogLine, LogSource, ObjectSource, Output};

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

/// One event, and no object.
struct OneEvent(Option<LogLine>);

impl LogSource for OneEvent {
    fn next_line(&mut self) -> Result<Option<LogLine>, Error> {
        Ok(self.0.take())
    }
}

struct NoObjects;

impl ObjectSource for NoObjects {
    fn size(&self, _: &Digest) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    fn read(&self, _: &Digest, _: u64, _: u64) -> Result<Option<Bytes>, Error> {
        Ok(None)
    }
}

/// One step on one event; whatever comes of it.
fn run(component: &Component) {
    let clock = Timestamp::from_millis(1_764_515_782_007);
    let frame = Frame {
        session: session(),
        agent: "agent".to_owned(),
        metadata: BTreeMap::new(),
        snapshot: 1,
        clock,
        args: Vec::new(),
    };
    let entry = Draft::push(r#"{"until":1}"#, Attributes::default()).build().unwrap();
    let mut lines = OneEvent(Some(LogLine { position: 0, event: "push", entry }));
    let setup = StepSetup {
        frame,
        log_digest: Digest::of(b"log"),
        objects: Arc::new(NoObjects),
        limits: Limits { time_ms: 300, ..Limits::default() },
        diagnostics: Arc::new(|_, _| {}),
        outside: None,
    };
    let _ = component.step(setup, &mut lines);
}

fn built(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests/out").join(name);
    fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; tests/build-guests.sh makes it", path.display())
    })
}

fn sandbox() -> &'static Sandbox {
    static SANDBOX: LazyLock<Sandbox> =
        LazyLock::new(|| Sandbox::new(Settings::default()).unwrap());
    &SANDBOX
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A real handler with a few bytes changed: it does not load, it fails, or it does something.
    #[test]
    fn damaged_handlers_are_refused_or_run(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        static HANDLER: LazyLock<Bytes> = LazyLock::new(|| {
            sandbox().load_bytes("it", built("counter.wasm").into()).unwrap().bytes().unwrap()
        });
        let mut bytes = HANDLER.to_vec();
        for (index, byte) in flips {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(component) = sandbox().load_bytes("it", bytes.into()) {
            run(&component);
        }
    }
}

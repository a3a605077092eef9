//! Hostile and ordinary guests, from file to outcome.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pugmark_log::{Digest, SessionId, Timestamp};

use super::*;
use crate::handler::{Frame, LogLine, LogSource, ObjectSource, Output};

struct Nothing;

impl LogSource for Nothing {
    fn next_line(&mut self) -> Result<Option<LogLine>, crate::Error> {
        Ok(None)
    }
}

impl ObjectSource for Nothing {
    fn size(&self, _: &Digest) -> Result<Option<u64>, crate::Error> {
        Ok(None)
    }

    fn read(&self, _: &Digest, _: u64, _: u64) -> Result<Option<Bytes>, crate::Error> {
        Ok(None)
    }
}

fn run(component: &Component, limits: Limits) -> Result<Vec<Output>, StepError> {
    let clock = Timestamp::from_millis(1_764_515_782_007);
    let setup = StepSetup {
        outside: None,
        frame: Frame {
            session: SessionId::new(clock, [7; 10]),
            agent: "agent".to_owned(),
            metadata: BTreeMap::new(),
            snapshot: 1,
            clock,
            args: Vec::new(),
        },
        log_digest: Digest::of(b"log"),
        objects: Arc::new(Nothing),
        limits,
        diagnostics: Arc::new(|_, _| {}),
    };
    component.step(setup, &mut Nothing)
}

fn sandbox() -> Sandbox {
    Sandbox::new(Settings::default()).unwrap()
}

/// A program for wasip1 whose `_start` is `body`.
fn program(body: &str) -> Bytes {
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write"
                (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (data (i32.const 64) "{{\"data\":\"e30=\"}}\n")
            (data (i32.const 0) "\40\00\00\00\10\00\00\00")
            (table $table 1 funcref)
            (func $deeper (param i32) (result i32)
                (i32.add (call $deeper (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
            (func (export "_start") {body}))"#
    );
    wat::parse_str(text).unwrap().into()
}

const HELLO: &str = "(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))";

fn failure(body: &str, limits: Limits) -> Failure {
    let component = sandbox().load_bytes("guest", program(body)).unwrap();
    match run(&component, limits) {
        Err(StepError::Failure(failure)) => failure,
        Err(StepError::Host(error)) => panic!("{error}"),
        Ok(outputs) => panic!("{outputs:?}"),
    }
}

#[test]
fn a_program_for_wasip1_says_hello() {
    let component = sandbox().load_bytes("hello", program(HELLO)).unwrap();
    assert_eq!(component.world(), World::Command);
    assert_eq!(Digest::of(&component.bytes().unwrap()), component.digest());
    for _ in 0..2 {
        let outputs = run(&component, Limits::default()).unwrap();
        let bodies: Vec<&[u8]> = outputs.iter().map(|output| &*output.body).collect();
        assert_eq!(bodies, [b"{}"]);
    }
}

#[test]
fn memory_is_bounded() {
    let body = "(loop (drop (memory.grow (i32.const 16))) (br 0))";
    let limit = 4 << 20;
    let limits = Limits { memory_bytes: limit, ..Limits::default() };
    assert_eq!(failure(body, limits), Failure::Exceeded(Exceeded::Memory { limit }));
}

#[test]
fn tables_are_bounded() {
    let body = "(loop (drop (table.grow $table (ref.null func) (i32.const 1000))) (br 0))";
    let limit = 100_000;
    let limits = Limits { table_elements: limit, ..Limits::default() };
    assert_eq!(failure(body, limits), Failure::Exceeded(Exceeded::Table { limit }));
}

#[test]
fn a_guest_that_loops_for_ever_is_ended_in_time() {
    let component = sandbox().load_bytes("guest", program("(loop (br 0))")).unwrap();
    let began = Instant::now();
    let ended = run(&component, Limits { time_ms: 200, ..Limits::default() });
    let elapsed = began.elapsed();
    let Err(StepError::Failure(failure)) = ended else { panic!("it ended by itself") };
    assert_eq!(failure, Failure::Exceeded(Exceeded::Time { limit_ms: 200 }));
    assert!(elapsed >= Duration::from_millis(190), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
}

#[test]
fn the_stack_is_bounded() {
    let body = "(drop (call $deeper (i32.const 0)))";
    assert_eq!(failure(body, Limits::default()), Failure::Exceeded(Exceeded::Stack));
}

#[test]
fn traps_and_exits_are_outcomes() {
    let trapped = failure("(unreachable)", Limits::default());
    assert!(matches!(&trapped, Failure::Trap { message } if message.contains("unreachable")));
    let exited = failure("(call $exit (i32.const 3))", Limits::default());
    assert!(matches!(exited, Failure::Exit { .. } | Failure::Refused { .. }), "{exited:?}");
}

#[test]
fn everything_that_inspection_lets_in_is_linked() {
    let engine = engine::build(&Tuning::default()).unwrap();
    let interfaces = inspect::SERVED.iter().chain(&inspect::DENIED);
    // An interface of types alone has nothing to link.
    for name in interfaces.filter(|name| **name != "pugmark:handler/types") {
        let mut linker = wasmtime::component::Linker::new(&engine);
        wasi::add_to_linker(&mut linker).unwrap();
        let series = if name.starts_with("wasi:") { "0.2" } else { "0.1" };
        // What is there already cannot be made something else.
        let mut is_taken = |name: String| {
            linker.root().func_wrap(&name, |_, (): ()| -> wasmtime::Result<()> { Ok(()) }).is_err()
        };
        let is_there = (0..30).any(|patch| is_taken(format!("{name}@{series}.{patch}")));
        assert!(is_there, "{name}");
    }
}

#[test]
fn compiled_code_that_is_handed_over_is_refused() {
    let code = engine::build(&Tuning::default())
        .unwrap()
        .precompile_component(&wat::parse_str("(component)").unwrap());
    let error = sandbox().load_bytes("agent.cwasm", code.unwrap().into()).err();
    let Some(LoadError::NotWasm { reason, .. }) = error else { panic!("{error:?}") };
    assert!(reason.contains(".cwasm"), "{reason}");
}

#[test]
fn an_export_of_another_type_is_an_outcome() {
    let text = r#"(component
        (core module $m (func (export "run")))
        (core instance $i (instantiate $m))
        (func $run (canon lift (core func $i "run")))
        (instance $out (export "run" (func $run)))
        (export "wasi:cli/run@0.2.0" (instance $out)))"#;
    match sandbox().load_bytes("x", wat::parse_str(text).unwrap().into()) {
        Err(error) => assert!(matches!(error, LoadError::Invalid { .. }), "{error}"),
        Ok(component) => {
            let ended = run(&component, Limits::default());
            assert!(matches!(ended, Err(StepError::Failure(Failure::Trap { .. }))), "{ended:?}");
        }
    }
}

/// A home with a cache.
struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn sandbox(&self) -> Sandbox {
        self.sandbox_with(None)
    }

    /// A sandbox that cannot compile: whatever it loads was in the cache.
    fn warm_sandbox(&self) -> Sandbox {
        self.sandbox_with(Some(vec!["/nonexistent/compiler".into()]))
    }

    fn sandbox_with(&self, compiler: Option<Vec<std::ffi::OsString>>) -> Sandbox {
        let cache_dir = Some(self.path("cache"));
        Sandbox::new(Settings { cache_dir, compiler, ..Settings::default() }).unwrap()
    }

    /// The only file of compiled code.
    fn code(&self) -> PathBuf {
        let entries = fs::read_dir(self.path("cache")).unwrap().map(|entry| entry.unwrap().path());
        let is_code = |path: &PathBuf| path.extension().is_some_and(|e| e == cache::CODE);
        let mut found: Vec<PathBuf> = entries.filter(is_code).collect();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }
}

#[test]
fn a_warm_cache_compiles_nothing_and_a_damaged_one_compiles_again() {
    let home = Home::new();
    let path = home.path("hello.wasm");
    let component = sandbox().load_bytes("hello", program(HELLO)).unwrap();
    fs::write(&path, component.bytes().unwrap()).unwrap();
    assert!(home.warm_sandbox().load_file(&path).is_err());

    let cold = home.sandbox().load_file(&path).unwrap();
    let warm = home.warm_sandbox().load_file(&path).unwrap();
    assert_eq!(warm.digest(), cold.digest());
    assert_eq!(warm.bytes().unwrap(), cold.bytes().unwrap());
    assert_eq!(run(&warm, Limits::default()).unwrap().len(), 1);

    let code = home.code();
    let mut bytes = fs::read(&code).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(&code).unwrap();
    fs::write(&code, bytes).unwrap();
    assert!(home.warm_sandbox().load_file(&path).is_err());
    let again = home.sandbox().load_file(&path).unwrap();
    assert_eq!(run(&again, Limits::default()).unwrap().len(), 1);
}

#[test]
fn a_component_is_fetched_only_when_its_code_is_not_here() {
    let home = Home::new();
    let first = home.sandbox().load_bytes("hello", program(HELLO)).unwrap();
    let bytes = first.bytes().unwrap();
    let fetched = AtomicUsize::new(0);
    let fetch = || -> Result<Bytes, LoadError> {
        fetched.fetch_add(1, Ordering::Relaxed);
        Ok(bytes.clone())
    };
    let warm = home.warm_sandbox().load_digest(first.digest(), fetch).unwrap();
    assert_eq!(fetched.load(Ordering::Relaxed), 0);
    assert_eq!(run(&warm, Limits::default()).unwrap().len(), 1);
    assert_eq!(warm.bytes().unwrap(), bytes, "adapted components are kept");

    let cold = Home::new().sandbox().load_digest(first.digest(), fetch).unwrap();
    assert_eq!(fetched.load(Ordering::Relaxed), 1);
    assert_eq!(cold.digest(), first.digest());
    let wrong = Home::new().sandbox().load_digest(Digest::of(b"other"), fetch);
    assert!(matches!(wrong.err(), Some(LoadError::Invalid { .. })));
}

#[test]
fn a_file_that_changed_is_not_given_for_what_was_loaded() {
    let home = Home::new();
    let path = home.path("hello.wasm");
    let component = program(HELLO);
    fs::write(&path, &component).unwrap();
    let plain = sandbox().load_file(&path).unwrap();
    fs::write(&path, program("")).unwrap();
    assert!(matches!(plain.bytes().err(), Some(LoadError::Changed { .. })));
    assert_ne!(sandbox().load_file(&path).unwrap().digest(), plain.digest());
}

#[test]
fn a_cache_that_others_reach_is_not_used_and_said_so() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let directory = home.path("cache");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    let notices = Arc::new(Mutex::new(Vec::new()));
    let of_closure = Arc::clone(&notices);
    let settings = Settings {
        cache_dir: Some(directory.clone()),
        notice: Arc::new(move |text| of_closure.lock().unwrap().push(text.to_owned())),
        ..Settings::default()
    };
    let sandbox = Sandbox::new(settings).unwrap();
    sandbox.load_bytes("hello", program(HELLO)).unwrap();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    let notices = notices.lock().unwrap();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains("open to other users"), "{notices:?}");
}

#[test]
fn what_cannot_be_read_says_why() {
    let error = sandbox().load_file("/nonexistent/agent.wasm".as_ref()).err().unwrap();
    assert_eq!(error.to_string(), "cannot read /nonexistent/agent.wasm");
    assert_eq!(error.kind(), pugmark_log::Kind::NotFound);
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(sandbox().load_file(directory.path()).err(), Some(LoadError::Io { .. })));
    let empty = Settings { compiler: Some(Vec::new()), ..Settings::default() };
    assert!(Sandbox::new(empty).is_err());
}

#[test]
fn a_component_over_the_limit_is_not_loaded() {
    let settings = Settings { max_component_bytes: 100, ..Settings::default() };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hello.wasm");
    fs::write(&path, program(HELLO)).unwrap();
    let error = Sandbox::new(settings).unwrap().load_file(&path).err();
    assert!(matches!(error, Some(LoadError::TooLarge { limit: 100, .. })), "{error:?}");
}

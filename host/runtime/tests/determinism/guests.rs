//! What is run: the example handlers, the probes that try to tell two runs apart, and others.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// A component, and the sessions that it is given.
pub struct Guest {
    /// Its row.
    pub name: &'static str,
    file: PathBuf,
    /// The letters of the variants that it is tried under.
    pub under: &'static str,
    /// Its sessions.
    pub sessions: Vec<Session>,
}

/// Every variant.
const ALL: &str = "ABCDEFGHIJK";

/// Those that differ in what code is made.
const ENGINES: &str = "ABDK";

/// Those for a component that takes seconds to compile, and that is there only where somebody made it.
const COMPILERS: &str = "ABD";

/// What a session begins with.
#[derive(Clone)]
pub struct Session {
    /// Arguments of the handler.
    pub args: Vec<String>,
    /// What is pushed.
    pub events: Vec<String>,
    /// Steps at most: some handlers would go on for ever.
    pub max_steps: u64,
}

/// Enough for a log that has a node.
const STEPS: u64 = 40;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Guest {
    /// A guest whose bytes come from elsewhere, with one session of one event.
    pub fn named(name: &'static str) -> Self {
        let sessions = vec![Session { max_steps: 1, ..events(&["{}"]) }];
        Self { name, file: PathBuf::new(), under: ALL, sessions }
    }

    fn built(name: &'static str, sessions: Vec<Session>) -> Self {
        let file = root().join(format!("target/guests/out/{name}.wasm"));
        Self { name, file, under: ALL, sessions }
    }

    /// The same, under the engines alone: what it does to memory others do as well.
    fn under_engines(self) -> Self {
        Self { under: ENGINES, ..self }
    }

    fn text(name: &'static str) -> Self {
        let file = root().join(format!("tests/guests/wat/{name}.wat"));
        Self { file, ..Self::named(name) }
    }

    /// Whether it is written in the text form, and so the same whatever compilers there are.
    pub fn is_text(&self) -> bool {
        self.file.extension().is_some_and(|extension| extension == "wat")
    }

    /// The component or core module; `None` for one that is there only where somebody made it.
    pub fn bytes(&self) -> Option<Bytes> {
        if self.under == COMPILERS && !self.file.exists() {
            return None;
        }
        let bytes = fs::read(&self.file).unwrap_or_else(|error| {
            panic!("{}: {error}; tests/build-guests.sh makes it", self.file.display())
        });
        Some(if self.is_text() {
            wat::parse_bytes(&bytes).unwrap().into_owned().into()
        } else {
            bytes.into()
        })
    }
}

fn events(events: &[&str]) -> Session {
    let events = events.iter().map(|&event| event.to_owned()).collect();
    Session { args: Vec::new(), events, max_steps: STEPS }
}

/// A session for each probe, named by its first event; a longer one follows.
fn probes(names: &[&str]) -> Vec<Session> {
    let long = "0123456789 ".repeat(200);
    let session =
        |name: &&str| events(&[&format!(r#"{{"probe":"{name}","piece":777,"bytes":100}}"#), &long]);
    names.iter().map(session).collect()
}

/// A session for each probe, named by an argument.
fn arguments(names: &[&str]) -> Vec<Session> {
    let named = |name: &&str| Session { args: vec![(*name).to_owned()], ..events(&["1", "2"]) };
    names.iter().map(named).collect()
}

/// All of them.
pub fn guests() -> Vec<Guest> {
    let issue = |number: u32, text: &str| {
        let user = r#""user":{"login":"ada","type":"User"}"#;
        format!(
            r#"{{"action":"opened","issue":{{"number":{number},"title":"{text}","body":"{text}, again and again","labels":[],{user}}}}}"#
        )
    };
    let triage = || {
        let first = [issue(1, "It crashes"), issue(2, "Please add dark mode"), issue(3, "Hm")];
        vec![Session { args: Vec::new(), events: first.into(), max_steps: STEPS }]
    };
    let large = Guest {
        name: "counter in Python, 18 MB",
        file: root().join("target/bench/large.wasm"),
        under: COMPILERS,
        sessions: vec![events(&["{}"])],
    };
    vec![
        Guest::built("triage", triage()),
        Guest::built("triage-wasip1", triage()).under_engines(),
        Guest::built("counter", vec![events(&[r#"{"until":38}"#])]),
        Guest::built("wasi-echo", vec![events(&[r#"{"kind":"input","text":"hello"}"#])])
            .under_engines(),
        large,
        Guest::built("typed-probe", probes(&TYPED)),
        Guest::built("typed-probe-max", probes(&["memory-hog", "memory-leap"])).under_engines(),
        Guest::built("typed-probe-wasip1", probes(&["hashmap-order", "entropy", "entries", "nan"]))
            .under_engines(),
        Guest::built("command-probe", [probes(&COMMAND), arguments(&BY_ARGUMENT)].concat()),
        Guest::built("command-objects", probes(&["any"])).under_engines(),
        Guest::text("floats"),
        Guest::text("relaxed-simd"),
        Guest::text("growth"),
    ]
}

const TYPED: [&str; 13] = [
    "hashmap-order",
    "entropy",
    "entries",
    "session",
    "decides",
    "nan",
    "read-whole",
    "read-past-end",
    "read-unknown",
    "read-pieces",
    "memory-leap",
    "log-huge",
    "output-huge",
];

const COMMAND: [&str; 15] = [
    "frame",
    "isatty",
    "preopens",
    "random",
    "hashmap-order",
    "denied",
    "denied-raw",
    "clocks",
    "busy-wait",
    "yield",
    "sleep",
    "sleep-long",
    "poll",
    "close-streams",
    "allocate",
];

const BY_ARGUMENT: [&str; 5] =
    ["stdin-chunks", "stdin-past-end", "stdout-permits", "no-read", "partial-read"];

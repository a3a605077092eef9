//! Probes of `wasi:http`; `tests/guests/README.md` says what each is to come to.
//!
//! The log's first event names the probe: `{"probe":"NAME","url":…}`, other fields are its arguments.
//! What it saw is one output, `{"probe":"NAME","saw":…}`, with a pause after it.

mod ask;
mod probes;

wit_bindgen::generate!({
    path: "../../../wit",
    inline: "
        package test:probe;

        package wasi:random@0.2.0 {
            interface random {
                get-random-u64: func() -> u64;
            }
        }

        world http-probe {
            include pugmark:handler/handler@0.1.0;
            import wasi:http/outgoing-handler@0.2.0;
            import wasi:clocks/monotonic-clock@0.2.0;
            import wasi:random/random@0.2.0;
        }
    ",
    world: "test:probe/http-probe",
    generate_all,
});

use std::cell::RefCell;

use exports::pugmark::handler::step::Guest;
use pugmark::handler::types::{Decision, Entry, Next, Output};
use serde_json::{Value, json};

/// What the log came to.
#[derive(Default)]
struct State {
    /// The first event.
    arguments: Value,
    /// How many entries there were.
    entries: u64,
    /// What a request in `fold` came to.
    folded: Value,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

struct Probe;

impl Guest for Probe {
    fn fold(entry: Entry) -> Result<(), String> {
        STATE.with_borrow_mut(|state| {
            if state.entries == 0 {
                let data = entry.data.unwrap_or_default();
                state.arguments = serde_json::from_slice(&data).unwrap_or_default();
                if state.arguments["probe"] == "in-fold" {
                    state.folded = probes::get(&state.arguments);
                }
            }
            state.entries += 1;
        });
        Ok(())
    }

    fn decide() -> Result<Decision, String> {
        STATE.with_borrow(|state| {
            let name = state.arguments["probe"].as_str().unwrap_or_default();
            let saw = match name {
                "in-fold" => json!([state.folded, probes::get(&state.arguments)]),
                name => probes::saw(name, &state.arguments, state.entries)?,
            };
            Ok(told(&json!({"probe": name, "saw": saw})))
        })
    }
}

export!(Probe);

fn told(body: &Value) -> Decision {
    let output = Output {
        data: body.to_string().into_bytes(),
        name: None,
        content_type: Some("application/json".to_owned()),
        content_encoding: None,
        schema_url: None,
        metadata: Vec::new(),
        extra: Vec::new(),
    };
    Decision { outputs: vec![output], next: Next::Pause("done".to_owned()), extra: Vec::new() }
}

//! Probes of the typed world; `tests/guests/README.md` says what each is to come to.
//!
//! The log's first event names the probe: `{"probe":"NAME", …}`, other fields are its arguments.
//! What it saw is one output, `{"probe":"NAME","saw":…}`, with a pause after it; with another step
//! after it if the first event has `"again":true`. Uses the bindings themselves, not the SDK: what a guest may do is wider than what the SDK does.

mod entropy;
mod greed;
mod hostile;
mod reads;
mod views;

wit_bindgen::generate!({ path: "../../../wit", world: "handler" });

use std::cell::RefCell;

use exports::pugmark::handler::step::Guest;
use pugmark::handler::types::{Decision, Entry, Next, Output};
use serde_json::{Value, json};

/// What the log came to.
#[derive(Default)]
pub struct State {
    /// The first event.
    arguments: Value,
    entries: Vec<Entry>,
    entropy: Vec<Value>,
    map: std::collections::HashMap<String, usize>,
    decides: u64,
}

impl State {
    fn probe(&self) -> &str {
        self.arguments["probe"].as_str().unwrap_or_default()
    }

    /// A number among the arguments.
    fn number(&self, name: &str, otherwise: u64) -> u64 {
        self.arguments[name].as_u64().unwrap_or(otherwise)
    }

    /// A text among the arguments.
    fn text(&self, name: &str) -> &str {
        self.arguments[name].as_str().unwrap_or_default()
    }
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

struct Probe;

impl Guest for Probe {
    fn fold(entry: Entry) -> Result<(), String> {
        STATE.with_borrow_mut(|state| {
            if state.entries.is_empty() {
                let data = entry.data.clone().unwrap_or_default();
                state.arguments = serde_json::from_slice(&data).unwrap_or_default();
            }
            let probe = state.probe().to_owned();
            match probe.as_str() {
                "hashmap-order" => views::fill(&mut state.map, &entry.hash),
                "entropy" => state.entropy.push(entropy::look()),
                _ => hostile::fold(&probe, state)?,
            }
            state.entries.push(entry);
            Ok(())
        })
    }

    fn decide() -> Result<Decision, String> {
        STATE.with_borrow_mut(|state| {
            state.decides += 1;
            if let Some(decision) = hostile::decide(state) {
                return decision;
            }
            let saw = views::saw(state)
                .or_else(|| reads::saw(state))
                .or_else(|| greed::saw(state))
                .ok_or_else(|| format!("no such probe: {:?}", state.probe()))?;
            let told = told(&json!({"probe": state.probe(), "saw": saw}));
            let again = state.arguments["again"] == true;
            Ok(if again { Decision { next: Next::Continue, ..told } } else { told })
        })
    }
}

export!(Probe);

/// One JSON output, then a pause.
fn told(body: &Value) -> Decision {
    paused(vec![output(body.to_string().into_bytes(), "application/json")])
}

fn paused(outputs: Vec<Output>) -> Decision {
    Decision { outputs, next: Next::Pause("done".to_owned()), extra: Vec::new() }
}

fn output(data: Vec<u8>, content_type: &str) -> Output {
    Output {
        data,
        name: None,
        content_type: Some(content_type.to_owned()),
        content_encoding: None,
        schema_url: None,
        metadata: Vec::new(),
        extra: Vec::new(),
    }
}

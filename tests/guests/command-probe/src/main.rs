//! Probes of the command world, as a program for `wasm32-wasip1`; `tests/guests/README.md` says
//! what each is to come to.
//!
//! The first argument names the probe, or else the log's first event does: `{"probe":"NAME", …}`,
//! other fields are its arguments. What it saw is one output, `{"probe":"NAME","saw":…}`, with a
//! pause after it.

#[cfg(debian)]
mod debian;
mod denied;
mod frame;
mod greed;
mod hostile;
mod raw;
mod time;

use std::io::{self, Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// What the probe was given.
pub struct Input {
    /// All of standard input, unless the probe was named by an argument.
    stdin: Vec<u8>,
    /// The first event.
    arguments: Value,
}

impl Input {
    fn number(&self, name: &str, otherwise: u64) -> u64 {
        self.arguments[name].as_u64().unwrap_or(otherwise)
    }

    fn text(&self, name: &str) -> &str {
        self.arguments[name].as_str().unwrap_or_default()
    }
}

fn main() {
    let named = std::env::args().nth(1);
    let mut input = Input { stdin: Vec::new(), arguments: Value::Null };
    if named.is_none() {
        io::stdin().read_to_end(&mut input.stdin).expect("standard input can be read");
        input.arguments = first_event(&input.stdin).unwrap_or_default();
    }
    let probe = named.unwrap_or_else(|| input.text("probe").to_owned());
    if hostile::ran(&probe, &input) {
        return;
    }
    let saw = frame::saw(&probe, &input)
        .or_else(|| denied::saw(&probe))
        .or_else(|| time::saw(&probe))
        .or_else(|| greed::saw(&probe, &input));
    match saw {
        Some(saw) => tell(&probe, &saw),
        None => {
            eprintln!("no such probe: {probe:?}");
            std::process::exit(2);
        }
    }
}

/// The body of the first line, as JSON.
fn first_event(stdin: &[u8]) -> Option<Value> {
    let line = stdin.split(|&byte| byte == b'\n').find(|line| !line.is_empty())?;
    let line: Value = serde_json::from_slice(line).ok()?;
    let body = BASE64.decode(line["data"].as_str()?).ok()?;
    serde_json::from_slice(&body).ok()
}

/// One JSON output, and a pause.
fn tell(probe: &str, saw: &Value) {
    let body = json!({"probe": probe, "saw": saw}).to_string();
    print_line(&line(body.as_bytes(), "application/json"));
    print_line(&line(b"done", "application/vnd.pugmark.pause+text"));
}

fn line(body: &[u8], content_type: &str) -> String {
    json!({"data": BASE64.encode(body), "content-type": content_type}).to_string()
}

fn print_line(line: &str) {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(line.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
        .expect("standard output can be written");
}

//! Probes that show what a program is given: arguments, environment, streams, random bytes.

use std::collections::HashMap;
use std::io::IsTerminal;

use serde_json::{Value, json};

use crate::{Input, raw};

/// What the probe saw, if it is one of these.
pub fn saw(probe: &str, input: &Input) -> Option<Value> {
    Some(match probe {
        "frame" => json!({
            "args": std::env::args().collect::<Vec<_>>(),
            "env": std::env::vars().collect::<Vec<_>>(),
            "stdin": String::from_utf8_lossy(&input.stdin),
        }),
        "isatty" => json!([
            std::io::stdin().is_terminal(),
            std::io::stdout().is_terminal(),
            std::io::stderr().is_terminal(),
        ]),
        "preopens" => (3..12).map(preopen).collect(),
        "random" => random(),
        "hashmap-order" => order(),
        "stdin-chunks" => chunks(),
        "stdin-past-end" => past_end(),
        "stdout-permits" => permits(),
        _ => return None,
    })
}

fn preopen(fd: i32) -> Value {
    let mut stat = [0; 2];
    // SAFETY: the pointer is valid for the call.
    json!(unsafe { raw::fd_prestat_get(fd, &mut stat) })
}

fn random() -> Value {
    [0, 1, 8, 64, 64].map(|len| json!(raw::random(len))).to_vec().into()
}

fn order() -> Value {
    let map = || (0..32).map(|number| (number, ())).collect::<HashMap<u64, ()>>();
    let (one, two) = (map(), map());
    json!([one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>()])
}

/// How many bytes each read gives. Named by an argument, so that nothing was read before.
fn chunks() -> Value {
    let mut seen = Vec::new();
    for len in [1, 7, 4_096, 1 << 20, 1 << 20, 1] {
        let mut buffer = vec![0; len];
        seen.push(json!([len, raw::read(0, &mut buffer)]));
    }
    seen.into()
}

fn past_end() -> Value {
    (0..4).map(|_| json!(raw::read(0, &mut [0; 16]))).collect()
}

/// How many bytes each write takes, while one long output is written in pieces.
fn permits() -> Value {
    let body = "A".repeat(1 << 20);
    let line = format!("{{\"data\":\"{body}\",\"content-type\":\"application/octet-stream\"}}\n");
    let mut rest = line.as_bytes();
    let mut seen = Vec::new();
    while !rest.is_empty() && seen.len() < 10_000 {
        let (errno, written) = raw::write(1, rest);
        seen.push(json!([errno, written]));
        if errno != 0 {
            break;
        }
        rest = &rest[written..];
    }
    seen.into()
}

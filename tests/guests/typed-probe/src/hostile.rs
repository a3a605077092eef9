//! Probes that misbehave: refuse, trap, never return, or answer what is not allowed.

use std::hint::black_box;

use serde_json::json;

use crate::pugmark::handler::log::{Level, log};
use crate::pugmark::handler::types::{Decision, Nap, Next};
use crate::{State, output, paused, told};

/// Terminal escapes, a bell, a carriage return, bidirectional overrides, a zero, a line break.
const ESCAPES: &str = "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7} \u{7}\rback \u{202e}desrever\u{202c} \
                       \u{2066}isolated\u{2069} \u{9b}31m nul\0 one\ntwo";

/// What goes wrong in `fold`.
pub fn fold(probe: &str, state: &State) -> Result<(), String> {
    match probe {
        "spin-fold" => spin(),
        "trap-fold" => core::arch::wasm32::unreachable(),
        "refuse-fold" => Err(format!("refused at {}", state.entries.len())),
        "refuse-fold-escapes" => Err(ESCAPES.to_owned()),
        _ => Ok(()),
    }
}

/// What goes wrong in `decide`; `None` if the probe is none of these.
pub fn decide(state: &State) -> Option<Result<Decision, String>> {
    Some(match state.probe() {
        "spin-decide" => spin(),
        "trap" => core::arch::wasm32::unreachable(),
        "trap-later" if state.decides >= state.number("decides", 3) => {
            core::arch::wasm32::unreachable()
        }
        "panic" => panic!("the probe panics"),
        "refuse" => Err("refused on purpose".to_owned()),
        "refuse-escapes" => Err(ESCAPES.to_owned()),
        "refuse-long" => Err("x".repeat(16 << 20)),
        "log-escapes" => {
            for level in [Level::Debug, Level::Info, Level::Warn, Level::Error] {
                log(level, ESCAPES);
            }
            Ok(told(&json!({"probe": "log-escapes", "saw": null})))
        }
        "pause-escapes" => Ok(next(Next::Pause(ESCAPES.to_owned()))),
        "pause-long" => Ok(next(Next::Pause("x".repeat(16 << 20)))),
        "sleep" => Ok(next(nap(state.number("ms", 1500)))),
        "sleep-forever" => Ok(next(nap(u64::MAX))),
        "empty" => Ok(next(Next::Continue)),
        "continue" => {
            Ok(Decision { next: Next::Continue, ..told(&json!({"decides": state.decides})) })
        }
        probe => return outputs(probe, state),
    })
}

/// Decisions whose outputs are too many, too long, or not allowed.
fn outputs(probe: &str, state: &State) -> Option<Result<Decision, String>> {
    let extra = || vec![("later".to_owned(), "1".to_owned())];
    let mut one = output(b"1".to_vec(), "application/json");
    Some(Ok(match probe {
        "outputs-flood" => {
            let count = usize::try_from(state.number("count", 1_000_000)).unwrap_or(usize::MAX);
            paused(vec![one; count])
        }
        "output-huge" => {
            let bytes = usize::try_from(state.number("bytes", 256 << 20)).unwrap_or(usize::MAX);
            paused(vec![output(vec![b'x'; bytes], "text/plain")])
        }
        "output-extra" => {
            one.extra = extra();
            paused(vec![one])
        }
        "decision-extra" => Decision { extra: extra(), ..paused(vec![one]) },
        "output-metadata" => {
            let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            one.metadata = vec![pair("b", "1"), pair("a", "2"), pair("b", "3")];
            paused(vec![one])
        }
        "output-attributes" => {
            one.name = Some(state.text("name").to_owned());
            one.content_type = Some(state.text("content-type").to_owned());
            one.content_encoding = Some(state.text("content-encoding").to_owned());
            one.schema_url = Some(state.text("schema-url").to_owned());
            paused(vec![one])
        }
        "output-pause" => {
            one.content_type = Some("application/vnd.pugmark.pause+text".to_owned());
            next_after(vec![one.clone(), one])
        }
        _ => return None,
    }))
}

fn next_after(outputs: Vec<crate::Output>) -> Decision {
    Decision { outputs, ..next(Next::Continue) }
}

fn next(next: Next) -> Decision {
    Decision { outputs: Vec::new(), next, extra: Vec::new() }
}

fn nap(duration_ms: u64) -> Next {
    Next::Sleep(Nap { duration_ms, reason: "a nap".to_owned() })
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

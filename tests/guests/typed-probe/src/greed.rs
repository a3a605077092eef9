//! Probes that take more than they are given: memory, stack, log lines, outputs.

use std::hint::black_box;

use serde_json::{Value, json};

use crate::State;
use crate::pugmark::handler::log::{Level, log};

/// What the probe saw, if it is one of these; most are stopped before they see anything.
pub fn saw(state: &State) -> Option<Value> {
    Some(match state.probe() {
        "memory-hog" => json!({"pages": grow()}),
        "memory-leap" => {
            json!({"grew": core::arch::wasm32::memory_grow::<0>(65_535) != usize::MAX})
        }
        "leak" => {
            let bytes = usize::try_from(state.number("bytes", 1 << 20)).unwrap_or(usize::MAX);
            json!({"leaked": black_box(vec![1_u8; bytes].leak()).len()})
        }
        "stack" => json!({"depth": dive(0)}),
        "log-flood" => {
            let count = state.number("count", u64::MAX);
            for number in 0..count {
                log(Level::Info, &format!("line {number}"));
            }
            json!({"lines": count})
        }
        "log-huge" => {
            let bytes = usize::try_from(state.number("bytes", 64 << 20)).unwrap_or(usize::MAX);
            log(Level::Info, &"x".repeat(bytes));
            json!({"bytes": bytes})
        }
        _ => return None,
    })
}

/// Grows memory page by page until that is refused.
fn grow() -> usize {
    let mut pages = 0;
    while core::arch::wasm32::memory_grow::<0>(1) != usize::MAX {
        pages += 1;
    }
    black_box(pages);
    core::arch::wasm32::memory_size::<0>()
}

/// Recurses for ever: no tail call, since the frame is used afterwards.
fn dive(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    let deeper = if black_box(true) { dive(depth + 1) } else { 0 };
    deeper + black_box(frame)[0]
}

//! Probes that take more than they are given.

use std::hint::black_box;

use serde_json::{Value, json};

use crate::{Input, raw};

/// What the probe saw, if it is one of these; most are stopped before they see anything.
pub fn saw(probe: &str, input: &Input) -> Option<Value> {
    Some(match probe {
        "memory-hog" => json!({"pages": grow()}),
        "allocate" => {
            let mut bytes: Vec<u8> = Vec::new();
            let refused = bytes.try_reserve_exact(3 << 30).is_err();
            json!({"refused": refused})
        }
        "stack" => json!({"depth": dive(0)}),
        "random-huge" => {
            let len = usize::try_from(input.number("bytes", 512 << 20)).unwrap_or(usize::MAX);
            json!({"errno": raw::random(len).0})
        }
        "handles" => handles(),
        _ => return None,
    })
}

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

/// Makes a pollable for each of very many waits at once.
fn handles() -> Value {
    let subscriptions = vec![[0_u64, 0, 1, 1, 0, 0]; 1 << 20];
    let mut events = vec![[0_u64; 4]; subscriptions.len()];
    let mut count = 0;
    // SAFETY: there is room for one event a subscription.
    let errno = unsafe {
        let (from, to) = (subscriptions.as_ptr(), events.as_mut_ptr());
        raw::poll_oneoff(from, to, subscriptions.len(), &mut count)
    };
    json!({"errno": errno, "happened": count})
}

//! Probes that show what a guest can see without doing any harm.

use std::collections::HashMap;
use std::hint::black_box;

use serde_json::{Value, json};

use crate::pugmark::handler::session;
use crate::{State, entropy};

/// What the probe saw, if it is one of these.
pub fn saw(state: &State) -> Option<Value> {
    Some(match state.probe() {
        "hashmap-order" => order(state),
        "entropy" => json!({
            "start": entropy::at_start(),
            "fold": state.entropy,
            "decide": [entropy::look(), entropy::look()],
        }),
        "entries" => state.entries.iter().map(entry).collect(),
        "session" => frame(),
        "decides" => json!(state.decides),
        "trap-later" => json!(state.entries.len()),
        "nan" => nan(),
        _ => return None,
    })
}

/// Puts 32 keys into the map that the state keeps.
pub fn fill(map: &mut HashMap<String, usize>, seed: &str) {
    for number in 0..32 {
        map.insert(format!("{seed}-{number}"), number);
    }
}

/// The order of a map that was folded, read after others have drawn keys of their own.
fn order(state: &State) -> Value {
    let mut fresh: HashMap<String, usize> = HashMap::new();
    fill(&mut fresh, "fresh");
    let another: HashMap<u64, u64> = (0..32).map(|number| (number, number)).collect();
    json!({
        "folded": state.map.values().collect::<Vec<_>>(),
        "fresh": fresh.values().collect::<Vec<_>>(),
        "another": another.values().collect::<Vec<_>>(),
    })
}

fn entry(entry: &crate::Entry) -> Value {
    json!({
        "position": entry.position,
        "event": entry.event,
        "hash": entry.hash,
        "size": entry.size,
        "name": entry.name,
        "content-type": entry.content_type,
        "content-encoding": entry.content_encoding,
        "schema-url": entry.schema_url,
        "metadata": entry.metadata,
        "data": entry.data.as_ref().map(Vec::len),
        "extra": entry.extra,
    })
}

fn frame() -> Value {
    let info = session::get();
    json!({
        "id": info.id,
        "agent": info.agent,
        "snapshot": info.snapshot,
        "metadata": info.metadata,
        "extra": info.extra,
    })
}

/// The bits of NaNs that arithmetic makes.
fn nan() -> Value {
    let zero = black_box(0.0_f64);
    let odd = f64::from_bits(black_box(0xfff4_dead_beef_0001));
    let narrow = f32::from_bits(black_box(0xffa1_2345));
    json!([
        (zero / zero).to_bits(),
        black_box(-1.0_f64).sqrt().to_bits(),
        (black_box(f64::INFINITY) * zero).to_bits(),
        (odd + black_box(1.0)).to_bits(),
        (odd * black_box(odd)).to_bits(),
        u64::from((narrow + black_box(1.0)).to_bits()),
        f64::from(narrow).to_bits(),
    ])
}

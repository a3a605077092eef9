//! Probes of object reads: too long, past the end, of what is not in the log.

use serde_json::{Value, json};

use crate::State;
use crate::pugmark::handler::objects;

/// What the probe saw, if it is one of these. They read the log's *last* event's object.
pub fn saw(state: &State) -> Option<Value> {
    let entry = state.entries.last()?;
    let hash = entry.hash.as_str();
    Some(match state.probe() {
        "read-whole" => json!({
            "size": size(hash),
            "huge-length": read(hash, 0, u32::MAX),
        }),
        "read-past-end" => json!([
            read(hash, entry.size.saturating_sub(1), 10),
            read(hash, entry.size, 1),
            read(hash, entry.size + 1, 1),
            read(hash, u64::MAX, u32::MAX),
            read(hash, 0, 0),
        ]),
        "read-unknown" => {
            let absent = format!("sha256:{}", "0".repeat(64));
            let upper = hash.to_uppercase();
            let bare = hash.trim_start_matches("sha256:");
            let hashes = ["../../etc/passwd", "", bare, &upper, &absent];
            hashes.iter().map(|hash| json!([size(hash), read(hash, 0, 1)])).collect()
        }
        "read-hash" => json!([size(state.text("hash")), read(state.text("hash"), 0, 1)]),
        "read-pieces" => pieces(hash, entry.size, state.number("piece", 1000)),
        "read-forever" => loop {
            let _ = objects::read(hash, 0, u32::MAX);
        },
        _ => return None,
    })
}

/// The size, or the error.
fn size(hash: &str) -> Value {
    objects::size(hash).map_or_else(|error| json!({"error": error}), Value::from)
}

/// Length and sum of what was read, or the error.
fn read(hash: &str, offset: u64, len: u32) -> Value {
    match objects::read(hash, offset, len) {
        Ok(bytes) => json!({"len": bytes.len(), "sum": sum(&bytes)}),
        Err(error) => json!({"error": error}),
    }
}

fn pieces(hash: &str, size: u64, piece: u64) -> Value {
    let (mut offset, mut total, mut reads) = (0, 0, 0);
    while offset < size {
        let Ok(bytes) = objects::read(hash, offset, u32::try_from(piece).unwrap_or(u32::MAX))
        else {
            return json!("a read failed");
        };
        if bytes.is_empty() {
            return json!("a read before the end gave nothing");
        }
        offset += bytes.len() as u64;
        total += sum(&bytes);
        reads += 1;
    }
    json!({"len": offset, "sum": total, "reads": reads})
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte)).sum()
}

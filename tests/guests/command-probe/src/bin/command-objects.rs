//! A program for `wasm32-wasip1` that reads objects through the import, besides its standard
//! streams: what to do with bodies that are too long for a line. It tells, for each event, the
//! length and the sum of the body's bytes.

wit_bindgen::generate!({
    path: "../../../wit",
    inline: "
        package pugmark:command-objects;

        world program {
            import pugmark:handler/objects@0.1.0;
            import pugmark:handler/session@0.1.0;
            import pugmark:handler/log@0.1.0;
        }
    ",
    generate_all,
});

use std::error::Error;
use std::io::{self, BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pugmark::handler::log::{Level, log};
use pugmark::handler::{objects, session};
use serde_json::{Value, json};

/// Bytes that are asked for in one call.
const PIECE_LEN: u32 = 64 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut bodies = Vec::new();
    for line in io::stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        bodies.push(body(line["hash"].as_str().unwrap_or_default())?);
    }
    log(Level::Info, &format!("read {} bodies", bodies.len()));
    let told = json!({"session": session::get().id, "bodies": bodies}).to_string();
    let mut stdout = io::stdout().lock();
    for (body, content_type) in
        [(told.as_str(), "application/json"), ("done", "application/vnd.pugmark.pause+text")]
    {
        let line = json!({"data": BASE64.encode(body), "content-type": content_type});
        writeln!(stdout, "{line}")?;
    }
    Ok(stdout.flush()?)
}

fn body(hash: &str) -> Result<Value, String> {
    let size = objects::size(hash)?;
    let (mut offset, mut sum) = (0, 0_u64);
    while offset < size {
        let piece = objects::read(hash, offset, PIECE_LEN)?;
        if piece.is_empty() {
            return Err(format!("{hash} ended at {offset} of {size}"));
        }
        offset += piece.len() as u64;
        sum += piece.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    }
    Ok(json!({"len": size, "sum": sum}))
}

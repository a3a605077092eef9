//! Answers `{"kind":"input","text":"…"}` with the text in capitals: a plain program over standard
//! input and output that knows nothing of pugmark but the lines it reads and writes.
//!
//! Built for `wasm32-wasip1` it runs in the sandbox; built natively it is a subprocess handler. It
//! looks at bodies that come with their line only.

use std::error::Error;
use std::io::{self, BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut last = Value::Null;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if !line.is_empty() {
            last = body(&serde_json::from_str(&line)?)?;
        }
    }
    let answer = match (last["kind"].as_str(), last["text"].as_str()) {
        (Some("input"), Some(text)) => {
            let echo = json!({"kind": "echo", "text": text.to_uppercase()});
            output(&echo.to_string(), "application/json")
        }
        _ => output("nothing to echo", "application/vnd.pugmark.pause+text"),
    };
    writeln!(io::stdout(), "{answer}")?;
    Ok(())
}

/// The body of an event as JSON; null if it is not JSON.
fn body(line: &Value) -> Result<Value, base64::DecodeError> {
    let data = BASE64.decode(line["data"].as_str().unwrap_or_default())?;
    Ok(serde_json::from_slice(&data).unwrap_or_default())
}

fn output(body: &str, content_type: &str) -> Value {
    json!({"data": BASE64.encode(body), "content-type": content_type})
}

//! A program for `wasm32-wasip1` that asks by HTTP: for the URLs that its last event lists, one
//! after the other. It tells what came of each.

wit_bindgen::generate!({
    path: "../../../wit",
    inline: "
        package pugmark:command-http;

        world program {
            import wasi:http/outgoing-handler@0.2.0;
        }
    ",
    generate_all,
});

#[path = "../../../http-probe/src/ask.rs"]
mod ask;

use std::error::Error;
use std::io::{self, BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut urls = Value::Null;
    for line in io::stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let body = BASE64.decode(line["data"].as_str().unwrap_or_default())?;
        urls = serde_json::from_slice(&body)?;
    }
    let mut answers = Vec::new();
    for url in urls.as_array().into_iter().flatten() {
        let request = ask::request("GET", url.as_str().unwrap_or_default(), &[])?;
        answers.push(ask::answer(&ask::send(request, b"")?));
    }
    let told = json!({ "saw": answers }).to_string();
    let mut stdout = io::stdout().lock();
    for (body, content_type) in
        [(told.as_str(), "application/json"), ("done", "application/vnd.pugmark.pause+text")]
    {
        let line = json!({"data": BASE64.encode(body), "content-type": content_type});
        writeln!(stdout, "{line}")?;
    }
    Ok(stdout.flush()?)
}

//! The lines of standard input and output (`docs/handler-protocol.md`). Bytes in, bytes out.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::decision::to_millis;
use crate::{Event, Kind, Next, Output, PAUSE_CONTENT_TYPE};

/// Why a line of input is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("not a line of the handler protocol")]
    Json(#[from] serde_json::Error),
    #[error("data is not base64")]
    Base64(#[from] base64::DecodeError),
    #[error("data is {found} bytes long, and size says {size}")]
    Size { found: u64, size: u64 },
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct InputLine {
    event: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    position: Option<u64>,
    #[serde(default)]
    hash: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    content_encoding: Option<String>,
    #[serde(default)]
    schema_url: Option<String>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
    #[serde(default)]
    data: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct OutputLine<'a> {
    data: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_encoding: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_url: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
}

/// The event of a line; `None` for one that holds no event of the log. `count` events came before
/// it, which is its position where the line does not name one.
pub(super) fn read(line: &[u8], count: u64) -> Result<Option<Event>, Error> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let line: InputLine = serde_json::from_slice(line)?;
    // Names a namespace of objects, and has no body.
    if line.event == "memory" {
        return Ok(None);
    }
    let body = OnceCell::new();
    if let Some(data) = line.data {
        let data = BASE64.decode(data)?;
        let found = data.len() as u64;
        if found != line.size {
            return Err(Error::Size { found, size: line.size });
        }
        // The cell is new: there is nothing in it to lose.
        let _ = body.set(data);
    }
    let set = |text: Option<String>| text.filter(|text| !text.is_empty());
    Ok(Some(Event {
        position: line.position.unwrap_or(count),
        kind: Kind::named(&line.event),
        hash: line.hash,
        size: line.size,
        name: set(line.name),
        content_type: set(line.content_type),
        content_encoding: set(line.content_encoding),
        schema_url: set(line.schema_url),
        metadata: line.metadata.unwrap_or_default(),
        location: line.url,
        body,
    }))
}

/// All lines of a decision.
pub(super) fn write(outputs: &[Output], next: &Next) -> Vec<u8> {
    let mut lines = Vec::new();
    for output in outputs {
        append(&mut lines, output);
    }
    let control = |reason: &String| Output::text(reason).content_type(PAUSE_CONTENT_TYPE);
    match next {
        Next::Continue => {}
        Next::Pause { reason } => append(&mut lines, &control(reason)),
        Next::Sleep { duration, reason } => {
            let ms = to_millis(*duration);
            let text = format!("{}.{:03}s", ms / 1_000, ms % 1_000);
            append(&mut lines, &control(reason).metadata("duration", text));
        }
    }
    lines
}

fn append(lines: &mut Vec<u8>, output: &Output) {
    let line = OutputLine {
        data: BASE64.encode(&output.body),
        name: output.name.as_deref(),
        content_type: output.content_type.as_deref(),
        content_encoding: output.content_encoding.as_deref(),
        schema_url: output.schema_url.as_deref(),
        metadata: &output.metadata,
    };
    serde_json::to_writer(&mut *lines, &line)
        .expect("strings and a map of strings have a JSON form, and a Vec takes them");
    lines.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_in_full() {
        let line = concat!(
            r#"{"event":"push","url":"http://127.0.0.1:1/s/o","size":7,"position":3,"#,
            r#""hash":"sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","#,
            r#""name":"n","content-type":"application/json","schema-url":"s","#,
            r#""metadata":{"a":"é"},"data":"eyJhIjoxfQ=="}"#,
        );
        let event = read(line.as_bytes(), 0).unwrap().unwrap();
        assert_eq!((event.position(), event.kind(), event.size()), (3, Kind::Push, 7));
        assert_eq!(
            event.hash(),
            "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
        );
        assert_eq!(event.name(), Some("n"));
        assert_eq!(event.content_type(), Some("application/json"));
        assert_eq!(event.content_encoding(), None);
        assert_eq!(event.schema_url(), Some("s"));
        assert_eq!(event.metadata()["a"], "é");
        assert_eq!(event.json::<BTreeMap<String, u8>>().unwrap()["a"], 1);
    }

    #[test]
    fn skips_what_is_no_event() {
        assert!(read(b" \r\n", 0).unwrap().is_none());
        assert!(read(br#"{"event":"memory","url":"http://h/m/"}"#, 0).unwrap().is_none());
    }

    #[test]
    fn refuses_what_is_broken() {
        assert!(matches!(read(b"[]", 0), Err(Error::Json(_))));
        let line = br#"{"event":"push","size":1,"data":"?"}"#;
        assert!(matches!(read(line, 0), Err(Error::Base64(_))));
        let line = br#"{"event":"push","size":2,"data":"QQ=="}"#;
        assert!(matches!(read(line, 0), Err(Error::Size { found: 1, size: 2 })));
    }
}

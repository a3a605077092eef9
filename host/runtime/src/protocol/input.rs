//! The lines of a handler's standard input.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pugmark_log::Digest;
use serde::Serialize;

use crate::handler::LogLine;

/// A line's wire form; the field order is fixed.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Line<'a> {
    event: &'a str,
    position: u64,
    url: &'a str,
    size: u64,
    hash: Digest,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// One line of a handler's input, line break included: where the body is fetched (`url`), and the
/// body itself where `data` is given.
#[must_use]
pub fn line(entry: &LogLine, url: &str, data: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512 + data.map_or(0, <[u8]>::len) / 3 * 4);
    append(&mut bytes, entry, url, data);
    bytes
}

/// Appends what [`line()`] returns to `buffer`.
pub fn append(buffer: &mut Vec<u8>, entry: &LogLine, url: &str, data: Option<&[u8]>) {
    let attributes = entry.entry.attributes();
    let line = Line {
        event: entry.event,
        position: entry.position,
        url,
        size: entry.entry.size(),
        hash: entry.entry.hash(),
        name: attributes.name.as_deref(),
        content_type: attributes.content_type.as_deref(),
        content_encoding: attributes.content_encoding.as_deref(),
        schema_url: attributes.schema_url.as_deref(),
        metadata: &attributes.metadata,
        data: data.map(|data| BASE64.encode(data)),
    };
    write(buffer, &line);
}

fn write(buffer: &mut Vec<u8>, line: &Line<'_>) {
    serde_json::to_writer(&mut *buffer, line)
        .expect("strings, numbers and a map of strings have a JSON form, and a Vec takes them");
    buffer.push(b'\n');
}

#[cfg(test)]
mod tests {
    use pugmark_log::{Attributes, Draft};

    use super::*;

    fn log_line(event: &'static str, body: &'static [u8], attributes: Attributes) -> LogLine {
        LogLine { position: 3, event, entry: Draft::push(body, attributes).build().unwrap() }
    }

    #[test]
    fn golden_bytes_in_full() {
        let entry = log_line(
            "push",
            b"{\"a\":1}",
            Attributes {
                name: Some("greeting \"x\"".into()),
                content_type: Some("application/json".into()),
                content_encoding: Some("gzip".into()),
                schema_url: Some("type.googleapis.com/a.B".into()),
                metadata: [("b".into(), "2\n".into()), ("a".into(), "é".into())].into(),
            },
        );
        let url = "http://127.0.0.1:1/s/o";
        assert_eq!(
            String::from_utf8(line(&entry, url, Some(b"{\"a\":1}"))).unwrap(),
            concat!(
                r#"{"event":"push","position":3,"url":"http://127.0.0.1:1/s/o","size":7,"#,
                r#""hash":"sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","#,
                r#""name":"greeting \"x\"","content-type":"application/json","#,
                r#""content-encoding":"gzip","schema-url":"type.googleapis.com/a.B","#,
                r#""metadata":{"a":"é","b":"2\n"},"data":"eyJhIjoxfQ=="}"#,
                "\n"
            )
        );
    }

    #[test]
    fn golden_bytes_at_the_least() {
        let entry = log_line("wake", b"", Attributes::default());
        assert_eq!(
            String::from_utf8(line(&entry, "u", None)).unwrap(),
            concat!(
                r#"{"event":"wake","position":3,"url":"u","size":0,"#,
                r#""hash":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#,
                "\n"
            )
        );
        assert!(line(&entry, "u", Some(b"")).ends_with(b",\"data\":\"\"}\n"));
    }
}

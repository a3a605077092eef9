//! A step's answer as a JSON document, to be shown and to be compared place by place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pugmark_log::{Ended, Target};
use pugmark_runtime::replay::{Answer, Line};
use serde_json::{Map, Value, json};

use crate::commands::diff::json::{Change, changes};

/// Bodies of more bytes are shown by their hash.
const SHOWN_BODY: u64 = 1 << 20;

/// How bodies that are JSON are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bodies {
    /// As the documents that they are.
    Documents,
    /// As the text that they are written as.
    Text,
}

/// The places where two answers differ: at least one, if they do.
pub fn difference(recorded: &Answer, replayed: &Answer) -> Vec<Change> {
    let between = |bodies| changes(&document(recorded, bodies), &document(replayed, bodies));
    let found = between(Bodies::Documents);
    if found.is_empty() { between(Bodies::Text) } else { found }
}

/// An answer as a document.
pub fn document(answer: &Answer, bodies: Bodies) -> Value {
    match answer {
        Answer::Failed { message } => json!({ "failed": message }),
        Answer::Outputs { outputs, ended } => {
            let outputs: Vec<Value> = outputs.iter().map(|line| output(line, bodies)).collect();
            let mut document = json!({ "outputs": outputs, "ended": word(*ended) });
            if let Ended::Sleep(wake) = ended {
                document["wake"] = json!(wake);
            }
            document
        }
    }
}

fn word(ended: Ended) -> &'static str {
    match ended {
        Ended::No => "no",
        Ended::Pause => "pause",
        Ended::Sleep(_) => "sleep",
        Ended::Empty => "empty",
    }
}

fn output(line: &Line, bodies: Bodies) -> Value {
    let mut shown = Map::new();
    match line.to {
        None => {}
        Some(Target::Session(session)) => {
            shown.insert("session".to_owned(), json!(session));
        }
        Some(Target::Fork) => {
            shown.insert("fork".to_owned(), json!(true));
        }
    }
    let attributes = line.entry.attributes();
    for (name, value) in [
        ("name", &attributes.name),
        ("content-type", &attributes.content_type),
        ("content-encoding", &attributes.content_encoding),
        ("schema-url", &attributes.schema_url),
    ] {
        if let Some(value) = value {
            shown.insert(name.to_owned(), json!(value));
        }
    }
    if !attributes.metadata.is_empty() {
        shown.insert("metadata".to_owned(), json!(attributes.metadata));
    }
    let body = line.body.as_deref().filter(|body| body.len() as u64 <= SHOWN_BODY);
    let (name, value) = match body {
        None => ("hash", json!(line.entry.hash())),
        Some(body) => match (serde_json::from_slice::<Value>(body), std::str::from_utf8(body)) {
            (Ok(document), _) if bodies == Bodies::Documents => ("body", document),
            (_, Ok(text)) => ("body", json!(text)),
            (_, Err(_)) => ("data", json!(BASE64.encode(body))),
        },
    };
    shown.insert(name.to_owned(), value);
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use pugmark_log::{Attributes, Draft};

    use super::*;

    fn answer(body: &str, name: Option<&str>, ended: Ended) -> Answer {
        let attributes = Attributes { name: name.map(str::to_owned), ..Attributes::default() };
        let entry = Draft::push(body.to_owned(), attributes).build().unwrap();
        let body = entry.data().cloned();
        Answer::Outputs { outputs: vec![Line { to: None, entry, body }], ended }
    }

    #[test]
    fn differences_lead_into_the_body() {
        let a = answer(r#"{"labels":["bug"]}"#, Some("x"), Ended::No);
        let b = answer(r#"{"labels":["docs"]}"#, None, Ended::Pause);
        let change = |path: &str, from: &str, to: &str| Change::Changed {
            path: path.to_owned(),
            from: json!(from),
            to: json!(to),
        };
        let gone = Change::Removed { path: "/outputs/0/name".to_owned(), from: json!("x") };
        assert_eq!(
            difference(&a, &b),
            [
                change("/ended", "no", "pause"),
                change("/outputs/0/body/labels/0", "bug", "docs"),
                gone
            ]
        );
    }

    #[test]
    fn one_document_in_two_spellings_differs() {
        let found = difference(
            &answer(r#"{"a":1}"#, None, Ended::No),
            &answer(r#"{"a": 1}"#, None, Ended::No),
        );
        let [Change::Changed { path, from, .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((path.as_str(), from), ("/outputs/0/body", &json!(r#"{"a":1}"#)));
    }

    #[test]
    fn a_failure_is_no_output() {
        let failed = Answer::Failed { message: "it trapped".to_owned() };
        let found = difference(&answer("x", None, Ended::No), &failed);
        let added = Change::Added { path: "/failed".to_owned(), to: json!("it trapped") };
        assert!(found.contains(&added), "{found:?}");
    }
}

//! What differs between two events: in what describes them, and in their bodies.

use bytes::Bytes;
use pugmark_log::Entry;
use serde::Serialize;

use crate::commands::body_of;
use crate::commands::diff::json::{self, Change};
use crate::error::Error;
use crate::open::Workspace;

/// Bodies of more bytes are compared by hash only.
const COMPARED_UNTIL: u64 = 4 * 1024 * 1024;

/// A description that differs.
#[derive(Serialize)]
pub struct Attribute {
    /// Which: `name`, `content_type`, … or `metadata.KEY`.
    pub name: String,
    /// What the first has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What the second has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// How two bodies differ.
#[derive(Serialize)]
#[serde(tag = "as", rename_all = "lowercase")]
pub enum Bodies {
    /// Not at all.
    Same,
    /// As JSON documents; nowhere, if they are one document in two spellings.
    Json {
        /// The places.
        changes: Vec<Change>,
    },
    /// As text, between the lines that they begin and end with alike.
    Text {
        /// The first line that differs, from 1.
        line: usize,
        /// The lines that only the first has.
        removed: Vec<String>,
        /// The lines that only the second has.
        added: Vec<String>,
    },
    /// As bytes: their hashes say so.
    Bytes,
}

/// How two events differ.
pub struct Difference {
    /// In what describes them.
    pub attributes: Vec<Attribute>,
    /// In their bodies.
    pub bodies: Bodies,
}

impl Difference {
    /// Compares two events.
    ///
    /// # Errors
    /// If a body cannot be read.
    pub async fn between(workspace: &Workspace, a: &Entry, b: &Entry) -> Result<Self, Error> {
        let attributes = attributes(a, b);
        let bodies = if a.hash() == b.hash() {
            Bodies::Same
        } else if a.size().max(b.size()) > COMPARED_UNTIL {
            Bodies::Bytes
        } else {
            let (a, b) = futures::try_join!(body_of(workspace, a), body_of(workspace, b))?;
            bodies(&a, &b)
        };
        Ok(Self { attributes, bodies })
    }
}

fn attributes(a: &Entry, b: &Entry) -> Vec<Attribute> {
    let (a, b) = (a.attributes(), b.attributes());
    let plain = [
        ("name", &a.name, &b.name),
        ("content_type", &a.content_type, &b.content_type),
        ("content_encoding", &a.content_encoding, &b.content_encoding),
        ("schema_url", &a.schema_url, &b.schema_url),
    ];
    let plain = plain.map(|(name, a, b)| (name.to_owned(), a.clone(), b.clone()));
    let keys: std::collections::BTreeSet<&String> =
        a.metadata.keys().chain(b.metadata.keys()).collect();
    let metadata = keys.into_iter().map(|key| {
        let name = format!("metadata.{key}");
        (name, a.metadata.get(key).cloned(), b.metadata.get(key).cloned())
    });
    let all = plain.into_iter().chain(metadata);
    all.filter(|(_, a, b)| a != b).map(|(name, from, to)| Attribute { name, from, to }).collect()
}

fn bodies(a: &Bytes, b: &Bytes) -> Bodies {
    if let (Ok(a), Ok(b)) = (serde_json::from_slice(a), serde_json::from_slice(b)) {
        return Bodies::Json { changes: json::changes(&a, &b) };
    }
    let (Ok(a), Ok(b)) = (std::str::from_utf8(a), std::str::from_utf8(b)) else {
        return Bodies::Bytes;
    };
    let (a, b): (Vec<&str>, Vec<&str>) =
        (a.split_inclusive('\n').collect(), b.split_inclusive('\n').collect());
    let (head, tail) = json::alike(&a, &b);
    let lines = |all: &[&str]| {
        all[head..all.len() - tail]
            .iter()
            .map(|line| line.trim_end_matches('\n').to_owned())
            .collect()
    };
    Bodies::Text { line: head + 1, removed: lines(&a), added: lines(&b) }
}

#[cfg(test)]
mod tests {
    use pugmark_log::{Attributes, Draft};

    use super::*;

    #[test]
    fn text_between_the_lines_that_are_alike() {
        let difference = bodies(&Bytes::from("a\nb\nc\n"), &Bytes::from("a\nx\ny\nc\n"));
        let Bodies::Text { line, removed, added } = difference else { panic!("not text") };
        assert_eq!((line, removed, added), (2, vec!["b".into()], vec!["x".into(), "y".into()]));
    }

    #[test]
    fn bytes_that_are_no_text() {
        assert!(matches!(bodies(&Bytes::from_static(b"\xff"), &Bytes::from("a")), Bodies::Bytes));
    }

    #[test]
    fn descriptions_by_name() {
        let draft = |name: &str, metadata: &[(&str, &str)]| {
            let metadata =
                metadata.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let attributes =
                Attributes { name: Some(name.into()), metadata, ..Attributes::default() };
            Draft::push("x", attributes).build().unwrap()
        };
        let found = attributes(&draft("a", &[("k", "1"), ("l", "2")]), &draft("b", &[("k", "1")]));
        let found: Vec<_> =
            found.iter().map(|a| (a.name.as_str(), a.from.as_deref(), a.to.as_deref())).collect();
        assert_eq!(found, [("name", Some("a"), Some("b")), ("metadata.l", Some("2"), None)]);
    }
}

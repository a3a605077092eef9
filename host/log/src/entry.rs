//! Entries: the events of a log, in their one canonical spelling.
//!
//! An entry's bytes are made once, by [`Draft::build`], and carried verbatim ever after: what this
//! version does not know of an entry survives, and its digest never changes.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::Error;
use crate::session_id::SessionId;

/// A body of fewer bytes than this lives in its entry; any other is an object of its own.
pub const INLINE_LIMIT: usize = 1024;

/// The longest entry that is written, in bytes: names and metadata count, inline bodies too.
pub const MAX_ENTRY_LEN: usize = 256 * 1024;

/// The content type of a control record that ends a handler's turn.
pub const PAUSE_CONTENT_TYPE: &str = "application/vnd.pugmark.pause+text";

/// What kind of event an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// Something was appended from outside or by a handler.
    #[default]
    Push,
    /// A sleep ended; appended by the runtime.
    Wake,
    /// A kind from a later version.
    #[serde(other)]
    Other,
}

/// What describes a body. All of it is optional.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// A name; several entries may share one.
    pub name: Option<String>,
    /// A media type.
    pub content_type: Option<String>,
    /// `gzip`, `zstd` and so on, where the body is encoded.
    pub content_encoding: Option<String>,
    /// Where the body's schema is described.
    pub schema_url: Option<String>,
    /// Free names and values.
    pub metadata: BTreeMap<String, String>,
}

/// Where an entry came from, when another session's step wrote it: recognises a delivery that is
/// made twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// The session that wrote it.
    pub session: SessionId,
    /// The version of the step's checkpoint.
    pub version: u64,
    /// Its place in that step's outbox.
    pub index: u32,
}

/// One event of a log.
#[derive(Clone, Debug)]
pub struct Entry {
    line: Bytes,
    hash: Digest,
    size: u64,
    event: Event,
    attributes: Attributes,
    origin: Option<Origin>,
    id: Option<String>,
    data: Option<Bytes>,
}

/// The persisted form; the field order is the canonical order.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Record<'a> {
    hash: Digest,
    size: u64,
    #[serde(default, skip_serializing_if = "is_push")]
    event: Event,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_encoding: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema_url: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    data: Option<std::borrow::Cow<'a, str>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_push(event: &Event) -> bool {
    *event == Event::Push
}

/// An entry to be: a body and what describes it.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The body, any bytes.
    pub body: Bytes,
    /// What describes it.
    pub attributes: Attributes,
    /// The kind of event.
    pub event: Event,
    /// Where it came from, if another session's step wrote it.
    pub origin: Option<Origin>,
    /// What whoever pushes it recognises it by: [`Bucket::push_once`](crate::Bucket::push_once).
    pub id: Option<String>,
}

impl Draft {
    /// A push of `body` with `attributes`.
    #[must_use]
    pub fn push(body: impl Into<Bytes>, attributes: Attributes) -> Self {
        Self { body: body.into(), attributes, ..Self::default() }
    }

    /// Whether the body goes into the entry itself.
    #[must_use]
    pub fn is_inline(&self) -> bool {
        self.body.len() < INLINE_LIMIT
    }

    /// The canonical entry. Empty attributes count as absent.
    ///
    /// # Errors
    /// [`Error::EntryTooLong`] past [`MAX_ENTRY_LEN`].
    pub fn build(&self) -> Result<Entry, Error> {
        self.build_hashed(Digest::of(&self.body))
    }

    /// The canonical entry of a body whose digest is known already.
    pub(crate) fn build_hashed(&self, hash: Digest) -> Result<Entry, Error> {
        let text = |value: &Option<String>| value.clone().filter(|v| !v.is_empty());
        let attributes = Attributes {
            name: text(&self.attributes.name),
            content_type: text(&self.attributes.content_type),
            content_encoding: text(&self.attributes.content_encoding),
            schema_url: text(&self.attributes.schema_url),
            metadata: self.attributes.metadata.clone(),
        };
        let record = Record {
            hash,
            size: self.body.len() as u64,
            event: self.event,
            name: attributes.name.clone(),
            content_type: attributes.content_type.clone(),
            content_encoding: attributes.content_encoding.clone(),
            schema_url: attributes.schema_url.clone(),
            metadata: attributes.metadata.clone(),
            origin: self.origin,
            id: self.id.clone(),
            data: self.is_inline().then(|| BASE64.encode(&self.body).into()),
        };
        let line = serde_json::to_vec(&record).map_err(|source| Error::Encode { source })?;
        if line.len() > MAX_ENTRY_LEN {
            return Err(Error::EntryTooLong { len: line.len(), limit: MAX_ENTRY_LEN });
        }
        Ok(Entry {
            line: line.into(),
            hash: record.hash,
            size: record.size,
            event: self.event,
            attributes,
            origin: self.origin,
            id: record.id,
            data: self.is_inline().then(|| self.body.clone()),
        })
    }
}

impl Entry {
    /// Reads an entry from its canonical bytes, which it keeps. Fields that this version does not
    /// know are carried along.
    ///
    /// # Errors
    /// [`Error::InvalidEntry`] if it is not an entry, or its inline body does not match its hash.
    pub fn parse(line: Bytes) -> Result<Self, Error> {
        let invalid = |reason: String| Error::InvalidEntry { reason };
        // It becomes a line of a node, where a line break would end it.
        if line.contains(&b'\n') {
            return Err(invalid("it is not on one line".into()));
        }
        let record: Record<'_> =
            serde_json::from_slice(&line).map_err(|source| invalid(source.to_string()))?;
        let data = match &record.data {
            None => None,
            Some(text) => {
                let body = BASE64
                    .decode(text.as_bytes())
                    .map_err(|source| invalid(format!("data: {source}")))?;
                if body.len() as u64 != record.size || Digest::of(&body) != record.hash {
                    return Err(invalid(format!("the inline body is not {}", record.hash)));
                }
                Some(Bytes::from(body))
            }
        };
        let attributes = Attributes {
            name: record.name,
            content_type: record.content_type,
            content_encoding: record.content_encoding,
            schema_url: record.schema_url,
            metadata: record.metadata,
        };
        let Record { hash, size, event, origin, id, .. } = record;
        Ok(Self { line, hash, size, event, attributes, origin, id, data })
    }

    /// The canonical bytes: one JSON object, no line break.
    #[must_use]
    pub fn line(&self) -> &Bytes {
        &self.line
    }

    /// The body's address.
    #[must_use]
    pub fn hash(&self) -> Digest {
        self.hash
    }

    /// The body's length in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The kind of event.
    #[must_use]
    pub fn event(&self) -> Event {
        self.event
    }

    /// What describes the body.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Where it came from, if another session's step wrote it.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        self.origin
    }

    /// What whoever pushed it recognises it by, if it was pushed so.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The body, where the entry itself holds it.
    #[must_use]
    pub fn data(&self) -> Option<&Bytes> {
        self.data.as_ref()
    }

    /// Whether this is a control record that ends a handler's turn; no handler is sent those.
    #[must_use]
    pub fn is_pause(&self) -> bool {
        self.attributes.content_type.as_deref() == Some(PAUSE_CONTENT_TYPE)
    }
}

impl PartialEq for Entry {
    /// Entries are equal when their bytes are.
    fn eq(&self, other: &Self) -> bool {
        self.line == other.line
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let attributes = Attributes {
            name: Some("greeting".into()),
            content_type: Some("application/json".into()),
            metadata: [("b".into(), "2".into()), ("a".into(), "\"1\"".into())].into(),
            ..Attributes::default()
        };
        let entry = Draft::push(&b"{\"a\":1}"[..], attributes).build().unwrap();
        assert_eq!(
            entry.line(),
            concat!(
                r#"{"hash":"sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","#,
                r#""size":7,"name":"greeting","content-type":"application/json","#,
                r#""metadata":{"a":"\"1\"","b":"2"},"data":"eyJhIjoxfQ=="}"#
            )
        );
        assert_eq!(Entry::parse(entry.line().clone()).unwrap(), entry);
    }

    #[test]
    fn origin_and_id_come_before_the_body() {
        let session = "019abc12-3456-789a-bcde-f0123456789a".parse().unwrap();
        let origin = Some(Origin { session, version: 3, index: 1 });
        let id = Some("a \"b\"".to_owned());
        let draft = Draft { origin, id, ..Draft::push(&b"x"[..], Attributes::default()) };
        let entry = draft.build().unwrap();
        let text = std::str::from_utf8(entry.line()).unwrap();
        let expected = concat!(
            r#""size":1,"origin":{"session":"019abc12-3456-789a-bcde-f0123456789a","#,
            r#""version":3,"index":1},"id":"a \"b\"","data":"eA=="}"#
        );
        assert!(text.ends_with(expected), "{text}");
        let parsed = Entry::parse(entry.line().clone()).unwrap();
        assert_eq!((parsed.origin(), parsed.id()), (origin, Some("a \"b\"")));
    }

    #[test]
    fn inline_below_a_kilobyte() {
        let short = Draft::push(vec![0; 1023], Attributes::default()).build().unwrap();
        let long = Draft::push(vec![0; 1024], Attributes::default()).build().unwrap();
        assert_eq!(short.data().map(bytes::Bytes::len), Some(1023));
        assert_eq!(long.data(), None);
        assert_eq!(long.size(), 1024);
    }

    #[test]
    fn keeps_what_it_does_not_know() {
        let entry = Draft::push(&b"x"[..], Attributes::default()).build().unwrap();
        let mut line = String::from_utf8(entry.line().to_vec()).unwrap();
        line.insert_str(1, r#""later":[1],"event":"dream","#);
        let parsed = Entry::parse(line.clone().into()).unwrap();
        assert_eq!(parsed.line(), line.as_bytes());
        assert_eq!(parsed.event(), Event::Other);
        assert_eq!(parsed.hash(), entry.hash());
    }

    #[test]
    fn refuses_a_line_break() {
        let entry = Draft::push(&b"x"[..], Attributes::default()).build().unwrap();
        let line = String::from_utf8(entry.line().to_vec()).unwrap().replacen(',', ",\n", 1);
        assert!(matches!(Entry::parse(line.into()), Err(Error::InvalidEntry { .. })));
    }

    #[test]
    fn refuses_a_body_that_is_not_its_hash() {
        let entry = Draft::push(&b"x"[..], Attributes::default()).build().unwrap();
        let line = String::from_utf8(entry.line().to_vec()).unwrap().replace("eA==", "eQ==");
        assert!(matches!(Entry::parse(line.into()), Err(Error::InvalidEntry { .. })));
    }
}

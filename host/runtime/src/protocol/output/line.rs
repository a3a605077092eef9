//! One line of a handler's output.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use pugmark_log::{Attributes, PAUSE_CONTENT_TYPE, SessionId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::error::{OutputErrorKind, excerpt, json_reason};
use crate::handler::Output;
use crate::protocol::duration;

/// A line's wire form. The values stay raw so that an error can name their field; what is `null`
/// counts as absent, and unknown fields are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Line<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    content_type: Option<&'a RawValue>,
    #[serde(borrow)]
    content_encoding: Option<&'a RawValue>,
    #[serde(borrow)]
    schema_url: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    fork: Option<&'a RawValue>,
    #[serde(borrow)]
    session: Option<&'a RawValue>,
}

/// A JSON string that is not copied unless it has escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Why a line is refused.
pub(super) enum Refusal {
    Kind(OutputErrorKind),
    /// It needs more bytes than are left.
    TooLong,
}

impl Refusal {
    /// The error's kind, when `limit` bytes are allowed in total.
    pub(super) fn into_kind(self, limit: usize) -> OutputErrorKind {
        match self {
            Self::Kind(kind) => kind,
            Self::TooLong => OutputErrorKind::TotalTooLong { limit },
        }
    }
}

impl From<OutputErrorKind> for Refusal {
    fn from(kind: OutputErrorKind) -> Self {
        Self::Kind(kind)
    }
}

/// Reads a line that is not blank: the output and its decoded length, at most `left` bytes.
pub(super) fn read(
    line: &[u8],
    own_session: SessionId,
    left: usize,
) -> Result<(Output, usize), Refusal> {
    let line = parse(line)?;
    let data = body_text(&line)?;
    refuse_unsupported(&line, own_session)?;
    let attributes = Attributes {
        name: optional(line.name, "name")?,
        content_type: optional(line.content_type, "content-type")?,
        content_encoding: optional(line.content_encoding, "content-encoding")?,
        schema_url: optional(line.schema_url, "schema-url")?,
        metadata: metadata(line.metadata)?,
    };
    check_pause(&attributes)?;
    let attributes_len = attributes_len(&attributes);
    let body_len = base64::decoded_len_estimate(data.len()).saturating_sub(2);
    if body_len.saturating_add(attributes_len) > left {
        return Err(Refusal::TooLong);
    }
    let body = BASE64
        .decode(data.as_bytes())
        .map_err(|source| OutputErrorKind::BadBase64 { reason: source.to_string() })?;
    let len = body.len() + attributes_len;
    if len > left {
        return Err(Refusal::TooLong);
    }
    Ok((Output { body: Bytes::from(body), attributes }, len))
}

fn parse(line: &[u8]) -> Result<Line<'_>, OutputErrorKind> {
    // A JSON array would do for serde, by position.
    let object = line.trim_ascii_start().first() == Some(&b'{');
    let parsed = if object {
        serde_json::from_slice::<Line<'_>>(line)
    } else {
        serde_json::from_slice::<&RawValue>(line).and_then(|_| serde_json::from_str("{}"))
    };
    match parsed {
        Ok(parsed) if object => Ok(parsed),
        Ok(_) => Err(OutputErrorKind::NotAnObject { text: excerpt(line) }),
        Err(source) if source.classify() == Category::Data => {
            Err(OutputErrorKind::Malformed { reason: json_reason(&source) })
        }
        Err(source) => {
            Err(OutputErrorKind::NotJson { reason: json_reason(&source), text: excerpt(line) })
        }
    }
}

/// The base64 text of the body. An empty `uri` counts as absent, an empty `data` is an empty body.
fn body_text<'a>(line: &Line<'a>) -> Result<Cow<'a, str>, OutputErrorKind> {
    let data = line.data.map(|raw| text(raw, "data")).transpose()?;
    let uri = line.uri.map(|raw| text(raw, "uri")).transpose()?.filter(|uri| !uri.is_empty());
    match (data, uri) {
        (Some(_), Some(_)) => Err(OutputErrorKind::TwoBodies),
        (None, None) => Err(OutputErrorKind::NoBody),
        (None, Some(_)) => Err(OutputErrorKind::Unsupported {
            field: "uri",
            purpose: "an object that pugmark is to fetch",
        }),
        (Some(data), None) => Ok(data),
    }
}

fn refuse_unsupported(line: &Line<'_>, own_session: SessionId) -> Result<(), OutputErrorKind> {
    if line.fork.map(|raw| typed::<bool>(raw, "fork", "true or false")).transpose()? == Some(true) {
        return Err(OutputErrorKind::Unsupported {
            field: "fork",
            purpose: "a child session seeded with this output",
        });
    }
    match line.session.map(|raw| text(raw, "session")).transpose()? {
        Some(other)
            if !other.is_empty() && other.parse::<SessionId>().ok() != Some(own_session) =>
        {
            Err(OutputErrorKind::Unsupported {
                field: "session",
                purpose: "an output for another session",
            })
        }
        _ => Ok(()),
    }
}

fn check_pause(attributes: &Attributes) -> Result<(), OutputErrorKind> {
    if attributes.content_type.as_deref() != Some(PAUSE_CONTENT_TYPE) {
        return Ok(());
    }
    let Some(text) = attributes.metadata.get("duration") else { return Ok(()) };
    let bad = |reason| OutputErrorKind::BadDuration { text: excerpt(text.as_bytes()), reason };
    duration::parse(text).map(drop).map_err(bad)
}

fn text<'a>(raw: &'a RawValue, field: &'static str) -> Result<Cow<'a, str>, OutputErrorKind> {
    let wrong = |_| OutputErrorKind::WrongType { field, expected: "a string" };
    serde_json::from_str::<Text<'a>>(raw.get()).map(|text| text.0).map_err(wrong)
}

fn typed<T: DeserializeOwned>(
    raw: &RawValue,
    field: &'static str,
    expected: &'static str,
) -> Result<T, OutputErrorKind> {
    serde_json::from_str(raw.get()).map_err(|_| OutputErrorKind::WrongType { field, expected })
}

/// A string; empty counts as absent.
fn optional(
    raw: Option<&RawValue>,
    field: &'static str,
) -> Result<Option<String>, OutputErrorKind> {
    let text = raw.map(|raw| text(raw, field)).transpose()?;
    Ok(text.filter(|text| !text.is_empty()).map(Cow::into_owned))
}

fn metadata(raw: Option<&RawValue>) -> Result<BTreeMap<String, String>, OutputErrorKind> {
    raw.map_or_else(|| Ok(BTreeMap::new()), |raw| typed(raw, "metadata", "an object of strings"))
}

fn attributes_len(attributes: &Attributes) -> usize {
    let Attributes { name, content_type, content_encoding, schema_url, metadata } = attributes;
    let texts = [name, content_type, content_encoding, schema_url];
    let texts = texts.into_iter().flatten().map(String::len);
    let pairs = metadata.iter().map(|(name, value)| name.len() + value.len());
    texts.chain(pairs).sum()
}

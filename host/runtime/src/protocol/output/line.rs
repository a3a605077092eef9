//! One line of a handler's output.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use pugmark_log::{Attributes, PAUSE_CONTENT_TYPE, SessionId, Target};
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

/// What a line says of the body.
enum Source<'a> {
    /// It is here, in base64.
    Data(Cow<'a, str>),
    /// It is to be fetched.
    Uri(String),
}

/// Reads a line that is not blank: the output and its decoded length, at most `left` bytes.
pub(super) fn read(
    line: &[u8],
    own_session: SessionId,
    uris: bool,
    left: usize,
) -> Result<(Output, usize), Refusal> {
    let line = parse(line)?;
    let source = source(&line, uris)?;
    let target = target(&line, own_session)?;
    let attributes = Attributes {
        name: optional(line.name, "name")?,
        content_type: optional(line.content_type, "content-type")?,
        content_encoding: optional(line.content_encoding, "content-encoding")?,
        schema_url: optional(line.schema_url, "schema-url")?,
        metadata: metadata(line.metadata)?,
    };
    check_pause(&attributes, target)?;
    let attributes_len = attributes_len(&attributes);
    let mut output = Output { attributes, target, ..Output::default() };
    let len = match source {
        Source::Data(data) => {
            let body_len = base64::decoded_len_estimate(data.len()).saturating_sub(2);
            if body_len.saturating_add(attributes_len) > left {
                return Err(Refusal::TooLong);
            }
            let body = BASE64
                .decode(data.as_bytes())
                .map_err(|source| OutputErrorKind::BadBase64 { reason: source.to_string() })?;
            output.body = Bytes::from(body);
            output.body.len()
        }
        Source::Uri(uri) => {
            let len = uri.len();
            output.uri = Some(uri);
            len
        }
    };
    let len = len.saturating_add(attributes_len);
    if len > left { Err(Refusal::TooLong) } else { Ok((output, len)) }
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

/// Where the body is. An empty `uri` counts as absent, an empty `data` is an empty body.
fn source<'a>(line: &Line<'a>, uris: bool) -> Result<Source<'a>, OutputErrorKind> {
    let data = line.data.map(|raw| text(raw, "data")).transpose()?;
    match (data, optional(line.uri, "uri")?) {
        (Some(_), Some(_)) => Err(OutputErrorKind::TwoBodies),
        (None, None) => Err(OutputErrorKind::NoBody),
        (None, Some(_)) if !uris => Err(OutputErrorKind::UriInSandbox),
        (None, Some(uri)) => Ok(Source::Uri(uri)),
        (Some(data), None) => Ok(Source::Data(data)),
    }
}

/// Where the output goes: the handler's own session counts as none, also with `fork`.
fn target(line: &Line<'_>, own: SessionId) -> Result<Option<Target>, OutputErrorKind> {
    let fork = line.fork.map(|raw| typed::<bool>(raw, "fork", "true or false")).transpose()?;
    let session = optional(line.session, "session")?;
    let other = match session.map(|text| (text.parse::<SessionId>(), text)) {
        None => None,
        Some((Ok(session), _)) if session == own => None,
        Some((Ok(session), _)) => Some(session),
        Some((Err(_), text)) => {
            return Err(OutputErrorKind::BadSession { text: excerpt(text.as_bytes()) });
        }
    };
    match (other, fork == Some(true)) {
        (Some(_), true) => Err(OutputErrorKind::TwoTargets),
        (Some(session), false) => Ok(Some(Target::Session(session))),
        (None, true) => Ok(Some(Target::Fork)),
        (None, false) => Ok(None),
    }
}

fn check_pause(attributes: &Attributes, target: Option<Target>) -> Result<(), OutputErrorKind> {
    if attributes.content_type.as_deref() != Some(PAUSE_CONTENT_TYPE) {
        return Ok(());
    }
    if target.is_some() {
        return Err(OutputErrorKind::PauseElsewhere);
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

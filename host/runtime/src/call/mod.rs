//! One step as one HTTP call: how handlers are run that stay, be it as a process of ours in RPC mode
//! or somewhere else.
//!
//! The log is the request's body and the outputs are the answer's, both as a command handler has
//! them on its standard input and output. A call is made once: whether a handler did something
//! before its answer was lost is not known here, so nothing is repeated.

mod client;
mod failure;
mod spool;

use std::time::Duration;

use futures::Stream;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use url::Url;

pub(crate) use self::client::{Reach, client};
pub use self::failure::CallFailure;
use self::spool::spool;
use crate::Error;
use crate::endpoint::Endpoint;
use crate::failure::InvokeError;
use crate::handler::{Frame, LogLine, Output};
use crate::protocol::output::{OutputLimits, Parser};
use crate::trace::Span;

/// The session's metadata, a JSON object of strings.
const METADATA: HeaderName = HeaderName::from_static("x-pugmark-session-metadata");

/// The step's key, an idempotency key for side effects.
const STEP_KEY: HeaderName = HeaderName::from_static("x-pugmark-step-key");

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// So much of an answer that is not the expected one is read, to show its beginning.
const EXCERPT_BYTES: usize = 4 * 1024;

/// Whom to call.
pub(crate) struct Callee<'a> {
    /// The handler's name for messages.
    pub name: &'a str,
    /// Where it answers.
    pub url: &'a Url,
    /// What calls it.
    pub client: &'a Client,
}

/// What a call says of its step, besides the log.
#[derive(Clone, Copy)]
pub(crate) struct StepHead<'a> {
    pub frame: &'a Frame,
    pub step_key: &'a str,
    pub span: Option<&'a Span>,
    pub limits: &'a OutputLimits,
}

/// Calls the handler once: gives it `lines`, and returns what it answered with status 200. Bounded
/// in size; whoever calls bounds the time.
///
/// # Errors
/// What the handler did instead, or what kept the host from calling it.
pub(crate) async fn call<S>(
    callee: &Callee<'_>,
    head: StepHead<'_>,
    lines: S,
    endpoint: &Endpoint,
) -> Result<Vec<Output>, InvokeError>
where
    S: Stream<Item = Result<LogLine, Error>> + Send + Unpin,
{
    // What failed in an earlier step is no news.
    drop(endpoint.take_failure());
    match exchange(callee, head, lines, endpoint).await {
        Err(InvokeError::Failure(failure)) => match endpoint.take_failure() {
            // A store that failed explains an answer that is none, not one that cannot be used.
            Some(error) if !failure.is_about_outputs() => Err(error.into()),
            _ => Err(InvokeError::Failure(failure)),
        },
        other => other,
    }
}

async fn exchange<S>(
    callee: &Callee<'_>,
    head: StepHead<'_>,
    lines: S,
    endpoint: &Endpoint,
) -> Result<Vec<Output>, InvokeError>
where
    S: Stream<Item = Result<LogLine, Error>> + Send + Unpin,
{
    let input = spool(lines, endpoint).await?;
    let mut headers = headers(&head);
    headers.insert(CONTENT_LENGTH, input.len.into());
    let request = callee.client.post(address(callee.url, head.frame)).headers(headers);
    let sent = request.body(input.body).send().await;
    let response = sent.map_err(|source| broken(callee, source))?;
    if response.status() != StatusCode::OK {
        return Err(refused(callee, response).await.into());
    }
    outputs(callee, head, response).await.map_err(InvokeError::from)
}

async fn outputs(
    callee: &Callee<'_>,
    head: StepHead<'_>,
    mut response: Response,
) -> Result<Vec<Output>, CallFailure> {
    let mut parser = Parser::new(*head.limits, head.frame.session);
    let unusable = |source| CallFailure::Output { handler: callee.name.to_owned(), source };
    while let Some(piece) = response.chunk().await.map_err(|source| broken(callee, source))? {
        parser.push(&piece).map_err(unusable)?;
    }
    parser.finish().map_err(unusable)
}

fn broken(callee: &Callee<'_>, source: reqwest::Error) -> CallFailure {
    // The address may have secrets in it.
    let (handler, source) = (callee.name.to_owned(), source.without_url());
    if source.is_connect() {
        CallFailure::Unreachable { handler, source }
    } else {
        CallFailure::Broken { handler, source }
    }
}

/// An answer with another status than 200, with the beginning of what it says.
async fn refused(callee: &Callee<'_>, mut response: Response) -> CallFailure {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece[..piece.len().min(EXCERPT_BYTES - body.len())]);
        if body.len() == EXCERPT_BYTES {
            break;
        }
    }
    let status = response.status().as_u16();
    CallFailure::refused(callee.name, status, &body)
}

/// The handler's address with what the protocol adds to its query.
fn address(url: &Url, frame: &Frame) -> Url {
    let mut url = url.clone();
    url.query_pairs_mut()
        .append_pair("agent", &frame.agent)
        .append_pair("session", &frame.session.to_string())
        .append_pair("snapshot", &frame.snapshot.to_string());
    url
}

fn headers(head: &StepHead<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| {
        // All values are ASCII by construction, but for a caller's `tracestate`.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(CONTENT_TYPE, "application/x-ndjson");
    set(METADATA, &ascii_json(&head.frame.metadata));
    set(STEP_KEY, head.step_key);
    if let Some(span) = head.span {
        set(TRACEPARENT, &span.traceparent());
        if let Some(state) = &span.state {
            set(TRACESTATE, state);
        }
    }
    headers
}

/// JSON in ASCII alone, so that any header can hold it.
fn ascii_json(metadata: &std::collections::BTreeMap<String, String>) -> String {
    use std::fmt::Write as _;

    let json = serde_json::to_string(metadata).expect("a map of strings has a JSON form");
    let mut ascii = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() && !character.is_ascii_control() {
            ascii.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(ascii, "\\u{unit:04x}");
        }
    }
    ascii
}

/// The time that a step has.
pub(crate) fn limit(timeout_ms: u64) -> Duration {
    Duration::from_millis(timeout_ms)
}

#[cfg(test)]
mod tests {
    use pugmark_log::Timestamp;

    use super::*;

    #[test]
    fn metadata_fits_into_a_header() {
        let metadata = [("user".to_owned(), "é\u{1f43e}\n\u{7f}\"".to_owned())].into();
        let json = ascii_json(&metadata);
        assert_eq!(json, "{\"user\":\"\\u00e9\\ud83d\\udc3e\\n\\u007f\\\"\"}");
        assert_eq!(
            serde_json::from_str::<std::collections::BTreeMap<String, String>>(&json).unwrap(),
            metadata
        );
    }

    #[test]
    fn the_query_says_which_step() {
        let frame = Frame {
            session: "01923456-789a-7fff-bfff-ffffffffffff".parse().unwrap(),
            agent: "a b&c".into(),
            metadata: std::collections::BTreeMap::new(),
            snapshot: 4,
            clock: Timestamp::from_millis(0),
            args: Vec::new(),
        };
        let query = "agent=a+b%26c&session=01923456-789a-7fff-bfff-ffffffffffff&snapshot=4";
        for (url, expected) in [
            ("http://127.0.0.1:1", format!("http://127.0.0.1:1/?{query}")),
            ("https://h/p?key=1", format!("https://h/p?key=1&{query}")),
        ] {
            assert_eq!(address(&url.parse().unwrap(), &frame).as_str(), expected);
        }
    }
}

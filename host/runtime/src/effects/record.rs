//! The persisted form of a request and its answer, as traces and steps' records have it.
//! `docs/storage-layout.md` specifies it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pugmark_log::{Bucket, Digest, INLINE_LIMIT};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::sandbox::{Answer, Refusal, Request, Response};

/// A request and its answer; the field order is the persisted order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effect {
    pub(super) request: RequestRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<ResponseRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A request. A body of 1024 bytes or more is not kept: the handler makes it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RequestRecord {
    method: String,
    url: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(flatten)]
    body: BodyRecord,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ResponseRecord {
    status: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(flatten)]
    body: BodyRecord,
}

/// A body: itself, in base64, or its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BodyRecord {
    size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<Digest>,
}

impl BodyRecord {
    fn of(body: &Bytes) -> Self {
        let inline = body.len() < INLINE_LIMIT;
        Self {
            size: body.len() as u64,
            data: inline.then(|| STANDARD.encode(body)),
            hash: (!inline).then(|| Digest::of(body)),
        }
    }

    fn inline(&self) -> Option<Vec<u8>> {
        self.data.as_ref().and_then(|data| STANDARD.decode(data).ok())
    }
}

/// Fields as text, a byte a character: JSON has no bytes, and these are nearly always ASCII.
fn to_text(fields: &[(String, Bytes)]) -> Vec<(String, String)> {
    let text = |value: &Bytes| value.iter().map(|byte| char::from(*byte)).collect();
    fields.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn from_text(fields: &[(String, String)]) -> Option<Vec<(String, Bytes)>> {
    let bytes =
        |text: &String| text.chars().map(|c| u8::try_from(c).ok()).collect::<Option<Vec<u8>>>();
    fields.iter().map(|(name, text)| Some((name.clone(), bytes(text)?.into()))).collect()
}

impl RequestRecord {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            method: request.method.clone(),
            url: request.url(),
            headers: to_text(&request.headers),
            body: BodyRecord::of(&request.body),
        }
    }
}

impl Effect {
    /// Records an answer, whose body is stored first if it is not kept in the record.
    pub(super) async fn record(
        bucket: &Bucket,
        request: RequestRecord,
        answer: &Answer,
    ) -> Result<Self, Error> {
        let (response, error) = match answer {
            Err(refusal) => (None, Some(refusal.name().to_owned())),
            Ok(Response { status, headers, body }) => {
                let record = BodyRecord::of(body);
                if record.hash.is_some() {
                    bucket.put_object(body.clone()).await?;
                }
                (
                    Some(ResponseRecord {
                        status: *status,
                        headers: to_text(headers),
                        body: record,
                    }),
                    None,
                )
            }
        };
        Ok(Self { request, response, error })
    }

    /// The recorded answer; `None` if the record is not one.
    pub(super) async fn answer(&self, bucket: &Bucket) -> Result<Option<Answer>, Error> {
        let ResponseRecord { status, headers, body } = match (&self.response, &self.error) {
            (Some(response), None) => response,
            (None, Some(error)) => return Ok(Refusal::named(error).map(Err)),
            _ => return Ok(None),
        };
        let bytes = match (body.inline(), body.hash) {
            (Some(bytes), None) => bytes.into(),
            (None, Some(hash)) => bucket.get_object(&hash).await?,
            _ => return Ok(None),
        };
        let Some(headers) = from_text(headers) else { return Ok(None) };
        Ok(Some(Ok(Response { status: *status, headers, body: bytes })))
    }

    /// The part in which a request differs from the recorded one; `None` if it is the same.
    pub(super) fn difference(&self, asked: &RequestRecord) -> Option<String> {
        let recorded = &self.request;
        if asked.method != recorded.method {
            let (asked, recorded) = (&asked.method, &recorded.method);
            return Some(format!("its method is {asked}; recorded is {recorded}"));
        }
        if asked.url != recorded.url {
            let (asked, recorded) = (&asked.url, &recorded.url);
            return Some(format!("its URL is {asked}; recorded is {recorded}"));
        }
        if asked.headers != recorded.headers {
            return Some(header_difference(&asked.headers, &recorded.headers));
        }
        (asked.body != recorded.body).then(|| body_difference(&asked.body, &recorded.body))
    }
}

fn header_difference(asked: &[(String, String)], recorded: &[(String, String)]) -> String {
    let at = asked.iter().zip(recorded).take_while(|(one, other)| one == other).count();
    let show = |field: Option<&(String, String)>| match field {
        Some((name, value)) => format!("`{name}: {}`", excerpt(value.as_bytes(), 0)),
        None => "none".to_owned(),
    };
    format!(
        "its header field {} is {}; recorded is {}",
        at + 1,
        show(asked.get(at)),
        show(recorded.get(at))
    )
}

fn body_difference(asked: &BodyRecord, recorded: &BodyRecord) -> String {
    if let (Some(one), Some(other)) = (asked.inline(), recorded.inline()) {
        let at = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        let (one, other) = (excerpt(&one, at), excerpt(&other, at));
        return format!("its body, from byte {at}, is `{one}`; recorded is `{other}`");
    }
    let show = |body: &BodyRecord| match body.hash {
        Some(hash) => format!("{} bytes, {hash}", body.size),
        None => format!("{} bytes", body.size),
    };
    format!("its body has {}; recorded are {}", show(asked), show(recorded))
}

/// What stands at `at`, with a little of what stands around it.
fn excerpt(bytes: &[u8], at: usize) -> String {
    const BEFORE: usize = 20;
    const LEN: usize = 80;
    let from = at.saturating_sub(BEFORE).min(bytes.len());
    let until = (from + LEN).min(bytes.len());
    let text = String::from_utf8_lossy(&bytes[from..until]);
    let (begin, end) =
        (if from > 0 { "…" } else { "" }, if until < bytes.len() { "…" } else { "" });
    format!("{begin}{text}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Scheme;

    fn request(body: &str) -> Request {
        Request {
            method: "POST".into(),
            scheme: Scheme::Https,
            authority: "a.example:8443".into(),
            path: "/v1?x=1".into(),
            headers: vec![
                ("content-type".into(), "text/plain".into()),
                ("x".into(), Bytes::from_static(b"\xe9")),
            ],
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    fn effect(request: &Request, answer: &Answer) -> Effect {
        let response = answer.as_ref().ok().map(|response| ResponseRecord {
            status: response.status,
            headers: to_text(&response.headers),
            body: BodyRecord::of(&response.body),
        });
        let error = answer.as_ref().err().map(|refusal| refusal.name().to_owned());
        Effect { request: RequestRecord::of(request), response, error }
    }

    #[test]
    fn golden_record() {
        let response = Response {
            status: 200,
            headers: vec![("date".into(), "now".into())],
            body: vec![b'x'; 1024].into(),
        };
        let text = serde_json::to_string(&effect(&request("hi"), &Ok(response))).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"request":{"method":"POST","url":"https://a.example:8443/v1?x=1","headers":"#,
                r#"[["content-type","text/plain"],["x","é"]],"size":2,"data":"aGk="},"#,
                r#""response":{"status":200,"headers":[["date","now"]],"size":1024,"#,
                r#""hash":"sha256:0f79cf7cc39bb21bc8bdff3f50e63c0c0efbab9e2b8e8b7e5d8fb9bfd1a57d5b"}}"#
            )
            .replace(
                "sha256:0f79cf7cc39bb21bc8bdff3f50e63c0c0efbab9e2b8e8b7e5d8fb9bfd1a57d5b",
                &Digest::of(&[b'x'; 1024]).to_string()
            )
        );
        let refused = effect(&request(""), &Err(Refusal::NoAddress));
        let text = serde_json::to_string(&refused).unwrap();
        assert!(text.ends_with(r#""size":0,"data":""},"error":"DNS-error"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Effect>(&text).unwrap(), refused);
    }

    #[test]
    fn names_the_part_that_differs() {
        let recorded = effect(&request("one two three"), &Err(Refusal::Denied));
        let differs = |change: &dyn Fn(&mut Request)| {
            let mut asked = request("one two three");
            change(&mut asked);
            recorded.difference(&RequestRecord::of(&asked))
        };
        assert_eq!(differs(&|_| {}), None);
        for (change, expected) in [
            (
                &(|r: &mut Request| r.method = "PUT".into()) as &dyn Fn(&mut Request),
                "its method is PUT; recorded is POST",
            ),
            (
                &|r| r.path = "/v2".into(),
                "its URL is https://a.example:8443/v2; recorded is https://a.example:8443/v1?x=1",
            ),
            (
                &|r| r.headers[0].1 = "text/html".into(),
                "its header field 1 is `content-type: text/html`; recorded is `content-type: text/plain`",
            ),
            (&|r| drop(r.headers.pop()), "its header field 2 is none; recorded is `x: é`"),
            (
                &|r| r.body = "one too three".into(),
                "its body, from byte 5, is `one too three`; recorded is `one two three`",
            ),
        ] {
            assert_eq!(differs(change).as_deref(), Some(expected));
        }
        let large = differs(&|r| r.body = vec![b'x'; 2000].into()).unwrap();
        assert!(large.starts_with("its body has 2000 bytes, sha256:"), "{large}");
        assert!(large.ends_with("; recorded are 13 bytes"), "{large}");
    }
}

//! One request, one response.

use std::convert::Infallible;
use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use pugmark_log::Digest;

use super::range::{Selection, names, select};
use super::{Body, Shared};

pub(super) type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;

/// Answers a request. A body that comes with it is not read.
pub(super) async fn respond(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let (head, _) = request.into_parts();
    let mut response = answer(shared, &head).await;
    if shared.crowded.load(Ordering::Relaxed) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn answer(shared: &Arc<Shared>, head: &Parts) -> Response<ResponseBody> {
    if !is_addressed(shared, head) {
        return plain(StatusCode::FORBIDDEN, "this host serves no other name\n");
    }
    let Some(hash) = requested(shared, head.uri.path()) else {
        return plain(StatusCode::NOT_FOUND, "no such object\n");
    };
    if head.method != Method::GET && head.method != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "objects can only be read\n");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match shared.objects.open(&hash).await {
        Ok(Some(body)) => object(shared, head, &hash, body),
        Ok(None) => plain(StatusCode::NOT_FOUND, "not an object of this session's log\n"),
        Err(failure) => {
            shared.record(failure);
            plain(StatusCode::BAD_GATEWAY, "the object store failed\n")
        }
    }
}

/// Whether the request is for this server by its address: a page in a browser that a hostile name
/// server led here is not.
fn is_addressed(shared: &Shared, head: &Parts) -> bool {
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let host = hosts.next().map(HeaderValue::as_bytes);
    let target = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    let own = shared.authority.as_bytes();
    host == Some(own) && hosts.next().is_none() && target.is_none_or(|target| target == own)
}

/// The object that a path asks for, if it begins with the secret.
fn requested(shared: &Shared, path: &str) -> Option<Digest> {
    let (secret, hash) = path.strip_prefix('/')?.split_once('/')?;
    if same(secret.as_bytes(), shared.secret.as_bytes()) { hash.parse().ok() } else { None }
}

/// Compares in a time that does not depend on where the two differ.
fn same(left: &[u8], right: &[u8]) -> bool {
    let difference = left.iter().zip(right).fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
    left.len() == right.len() && difference == 0
}

fn object(shared: &Arc<Shared>, head: &Parts, hash: &Digest, body: Body) -> Response<ResponseBody> {
    let etag = format!("\"{hash}\"");
    let mut response = Response::new(empty());
    set(&mut response, header::ETAG, &etag);
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    if texts(&head.headers, header::IF_NONE_MATCH).any(|tags| names(tags, &etag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    let size = body.size;
    let part = match selection(head, &etag, size) {
        Selection::Whole => 0..size,
        Selection::Part(part) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let (first, last) = (part.start, part.end - 1);
            set(&mut response, header::CONTENT_RANGE, &format!("bytes {first}-{last}/{size}"));
            part
        }
        Selection::Unsatisfiable => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            set(&mut response, header::CONTENT_RANGE, &format!("bytes */{size}"));
            return response;
        }
    };
    if let Some(content_type) = &body.content_type {
        set(&mut response, header::CONTENT_TYPE, content_type);
    }
    response.headers_mut().insert(header::CONTENT_LENGTH, (part.end - part.start).into());
    if head.method == Method::GET && !part.is_empty() {
        *response.body_mut() = stream(shared.clone(), body, part);
    }
    response
}

fn selection(head: &Parts, etag: &str, size: u64) -> Selection {
    let mut ranges = texts(&head.headers, header::RANGE);
    let mut conditions = texts(&head.headers, header::IF_RANGE);
    match ranges.next() {
        Some(range) if head.method == Method::GET && conditions.all(|tag| tag.trim() == etag) => {
            select(range, size)
        }
        _ => Selection::Whole,
    }
}

fn stream(shared: Arc<Shared>, body: Body, part: Range<u64>) -> ResponseBody {
    let chunks = (body.read)(part).map(move |chunk| match chunk {
        Ok(bytes) => Ok(Frame::data(bytes)),
        Err(failure) => {
            shared.record(failure);
            Err(io::Error::other("the object store failed"))
        }
    });
    StreamBody::new(chunks).boxed_unsync()
}

fn plain(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from_static(text.as_bytes())).map_err(never).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE, "text/plain");
    response
}

fn empty() -> ResponseBody {
    Empty::new().map_err(never).boxed_unsync()
}

fn never(error: Infallible) -> io::Error {
    match error {}
}

/// Sets a header, unless no header can hold the value: a content type may be any text.
fn set(response: &mut Response<ResponseBody>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn texts(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
}

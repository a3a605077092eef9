//! As much of S3 as the log needs, within this process, and with faults between client and store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use object_store::client::{
    HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use pugmark_log::faults::Dice;
use pugmark_log::object_store;

/// What the network and the server do to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is done and answered.
    Pass,
    /// The server answers so, and nothing is done.
    Refuse(StatusCode),
    /// It is done, and the server answers so all the same.
    DoneButRefuse(StatusCode),
    /// The connection breaks before the request arrives.
    CutBefore,
    /// It is done, and the connection breaks before the answer.
    CutAfter,
    /// It is done, and the connection breaks in the middle of the answer.
    CutWithin,
    /// No answer comes in time; it is done this many requests later.
    Late(u32),
}

/// How often faults happen, per thousand requests, and how many at most one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub per_mille: u32,
    pub in_a_row: u32,
}

/// The server, and the network to it.
#[derive(Debug)]
pub struct Fake {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    keys: BTreeMap<String, Bytes>,
    late: Vec<(u32, HeldPut)>,
    dice: Dice,
    weather: Weather,
    faults_in_a_row: u32,
    requests: u64,
}

#[derive(Clone, Debug)]
struct HeldPut {
    key: String,
    body: Bytes,
    if_absent: bool,
}

impl Fake {
    pub fn new(seed: u64, weather: Weather) -> Self {
        let state = State {
            keys: BTreeMap::new(),
            late: Vec::new(),
            dice: Dice::new(seed),
            weather,
            faults_in_a_row: 0,
            requests: 0,
        };
        Self { state: Mutex::new(state) }
    }

    /// Ends all faults; what is still on its way arrives.
    pub fn clear_up(&self) {
        let mut state = self.lock();
        state.weather.per_mille = 0;
        for (_, put) in std::mem::take(&mut state.late) {
            state.put(&put);
        }
    }

    pub fn set_weather(&self, weather: Weather) {
        self.lock().weather = weather;
    }

    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        self.lock().requests
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

#[async_trait]
impl HttpService for Fake {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (fate, there, back) = {
            let mut state = self.lock();
            let fate = state.draw(request.method(), request.headers());
            (fate, state.dice.below(20), state.dice.below(20))
        };
        tokio::time::sleep(Duration::from_millis(there)).await;
        let answer = self.lock().handle(&request, fate);
        tokio::time::sleep(Duration::from_millis(back)).await;
        answer
    }
}

impl State {
    fn draw(&mut self, method: &Method, headers: &HeaderMap) -> Fate {
        self.requests += 1;
        let puts = method == Method::PUT;
        let faulty = self.dice.per_mille(self.weather.per_mille)
            && self.faults_in_a_row < self.weather.in_a_row;
        if !faulty {
            // A read in between does not make a create that keeps failing a new one.
            self.faults_in_a_row = if puts { 0 } else { self.faults_in_a_row };
            return Fate::Pass;
        }
        self.faults_in_a_row += 1;
        let later = u32::try_from(1 + self.dice.below(8)).unwrap();
        let creates = headers.contains_key("if-none-match");
        let fates: &[Fate] = &[
            Fate::Refuse(StatusCode::SERVICE_UNAVAILABLE),
            Fate::Refuse(StatusCode::INTERNAL_SERVER_ERROR),
            Fate::CutBefore,
            Fate::CutAfter,
            Fate::CutWithin,
            Fate::Late(later),
            Fate::DoneButRefuse(StatusCode::INTERNAL_SERVER_ERROR),
            Fate::DoneButRefuse(StatusCode::BAD_GATEWAY),
            Fate::Refuse(if creates {
                StatusCode::CONFLICT
            } else {
                StatusCode::TOO_MANY_REQUESTS
            }),
        ];
        fates[usize::try_from(self.dice.below(fates.len() as u64)).unwrap()]
    }

    fn handle(&mut self, request: &HttpRequest, fate: Fate) -> Result<HttpResponse, HttpError> {
        self.land_late();
        match fate {
            Fate::Pass => Ok(self.serve(request)),
            Fate::Refuse(status) => Ok(error(status)),
            Fate::DoneButRefuse(status) => {
                self.serve(request);
                Ok(error(status))
            }
            Fate::CutBefore => Err(broken(HttpErrorKind::Connect)),
            Fate::CutAfter => {
                self.serve(request);
                Err(broken(HttpErrorKind::Request))
            }
            // Of a listing, the client is handed all or nothing, as by the one of the command line.
            Fate::CutWithin if is_listing(request) => Err(broken(HttpErrorKind::Interrupted)),
            Fate::CutWithin => halved(self.serve(request)),
            Fate::Late(requests) => {
                if let Some(put) = HeldPut::of(request) {
                    self.late.push((requests, put));
                }
                Err(broken(HttpErrorKind::Timeout))
            }
        }
    }

    fn land_late(&mut self) {
        for (requests, _) in &mut self.late {
            *requests -= 1;
        }
        let (due, late) = self.late.drain(..).partition(|(requests, _)| *requests == 0);
        self.late = late;
        let due: Vec<(u32, HeldPut)> = due;
        for (_, put) in due {
            self.put(&put);
        }
    }

    fn serve(&mut self, request: &HttpRequest) -> HttpResponse {
        if is_listing(request) {
            return self.list(request.uri().query().unwrap_or_default());
        }
        let key = key_of(request);
        match *request.method() {
            Method::PUT => {
                let put = HeldPut::of(request).unwrap();
                if self.put(&put) {
                    answer(StatusCode::OK, Bytes::new())
                } else {
                    error(StatusCode::PRECONDITION_FAILED)
                }
            }
            Method::GET => match self.keys.get(&key) {
                Some(body) => ranged(request.headers(), body),
                None => error(StatusCode::NOT_FOUND),
            },
            Method::HEAD => match self.keys.get(&key) {
                Some(body) => head(body.len()),
                None => error(StatusCode::NOT_FOUND),
            },
            Method::DELETE => {
                self.keys.remove(&key);
                answer(StatusCode::NO_CONTENT, Bytes::new())
            }
            _ => error(StatusCode::NOT_IMPLEMENTED),
        }
    }

    /// Whether it was written.
    fn put(&mut self, put: &HeldPut) -> bool {
        let free = !put.if_absent || !self.keys.contains_key(&put.key);
        if free {
            self.keys.insert(put.key.clone(), put.body.clone());
        }
        free
    }

    fn list(&self, query: &str) -> HttpResponse {
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| decode(value))
        };
        let prefix = parameter("prefix").unwrap_or_default();
        let limit = parameter("max-keys").map_or(usize::MAX, |text| text.parse().unwrap());
        let folders_only = parameter("delimiter").is_some();
        let mut xml = "<ListBucketResult>".to_owned();
        let mut folders = BTreeSet::new();
        let after = self.keys.range(prefix.clone()..);
        let below = after.take_while(|(key, _)| key.starts_with(&prefix));
        for (key, body) in below.take(limit) {
            match key[prefix.len()..].split_once('/') {
                Some((folder, _)) if folders_only => {
                    folders.insert(format!("{prefix}{folder}/"));
                }
                _ => write!(
                    xml,
                    "<Contents><Key>{key}</Key><LastModified>2026-01-31T12:00:00.000Z\
                     </LastModified><ETag>\"e\"</ETag><Size>{}</Size></Contents>",
                    body.len()
                )
                .unwrap(),
            }
        }
        for folder in folders {
            write!(xml, "<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>").unwrap();
        }
        xml.push_str("</ListBucketResult>");
        answer(StatusCode::OK, xml.into())
    }
}

impl HeldPut {
    fn of(request: &HttpRequest) -> Option<Self> {
        if request.method() != Method::PUT {
            return None;
        }
        let if_absent = request.headers().get("if-none-match").is_some_and(|value| value == "*");
        let body = body_of(request.body().clone());
        Some(Self { key: key_of(request), body, if_absent })
    }
}

/// What is sent, which is all there already.
fn body_of(mut body: object_store::client::HttpRequestBody) -> Bytes {
    use http_body_util::BodyExt as _;
    let mut bytes = Vec::new();
    while let Some(frame) = futures::FutureExt::now_or_never(body.frame()).flatten() {
        bytes.extend_from_slice(frame.unwrap().data_ref().unwrap());
    }
    bytes.into()
}

fn is_listing(request: &HttpRequest) -> bool {
    request.uri().query().is_some_and(|query| query.contains("list-type=2"))
}

fn key_of(request: &HttpRequest) -> String {
    let path = decode(request.uri().path());
    path.strip_prefix("/bucket/").unwrap_or_default().to_owned()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits = std::str::from_utf8(&rest[..2]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn head(len: usize) -> HttpResponse {
    http::Response::builder()
        .header("content-length", len)
        .header("etag", "\"e\"")
        .header("last-modified", "Sat, 31 Jan 2026 12:00:00 GMT")
        .body(HttpResponseBody::from(Bytes::new()))
        .unwrap()
}

fn answer(status: StatusCode, body: Bytes) -> HttpResponse {
    let mut response = head(body.len()).map(|_| HttpResponseBody::from(body));
    *response.status_mut() = status;
    response
}

/// A body, or the part of it that is asked for: `bytes=FROM-TO`, `bytes=FROM-` or `bytes=-COUNT`.
fn ranged(headers: &HeaderMap, body: &Bytes) -> HttpResponse {
    let Some(range) = headers.get("range") else { return answer(StatusCode::OK, body.clone()) };
    let range = range.to_str().unwrap().strip_prefix("bytes=").unwrap();
    let (from, to) = range.split_once('-').unwrap();
    let number = |text: &str| text.parse::<usize>().unwrap();
    let (from, to) = match (from, to) {
        ("", count) => (body.len().saturating_sub(number(count)), body.len()),
        (from, "") => (number(from), body.len()),
        (from, to) => (number(from), body.len().min(number(to) + 1)),
    };
    if from >= to {
        return error(StatusCode::RANGE_NOT_SATISFIABLE);
    }
    let mut response = answer(StatusCode::PARTIAL_CONTENT, body.slice(from..to));
    let found = format!("bytes {from}-{}/{}", to - 1, body.len());
    response.headers_mut().insert("content-range", found.parse().unwrap());
    response
}

fn error(status: StatusCode) -> HttpResponse {
    let body = format!("<Error><Code>{}</Code></Error>", status.as_u16());
    answer(status, body.into())
}

fn broken(kind: HttpErrorKind) -> HttpError {
    let io = match kind {
        HttpErrorKind::Timeout => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::ConnectionReset,
    };
    HttpError::new(kind, io::Error::from(io))
}

/// An answer whose body breaks off in the middle; there is no middle to one without a body.
fn halved(response: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (head, body) = response.into_parts();
    let whole = futures::FutureExt::now_or_never(body.bytes()).unwrap().unwrap();
    if whole.is_empty() {
        return Err(broken(HttpErrorKind::Request));
    }
    let half = whole.slice(..whole.len() / 2);
    let frames = [Ok(http_body::Frame::data(half)), Err(broken(HttpErrorKind::Interrupted))];
    let body = HttpResponseBody::new(BoxBody::new(StreamBody::new(stream::iter(frames))));
    Ok(HttpResponse::from_parts(head, body))
}

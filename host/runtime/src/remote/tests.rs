use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream;
use pugmark_log::{Attributes, Digest, Draft, Timestamp};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::endpoint::{Body, ServedObjects};
use crate::failure::Failure;
use crate::handler::Frame;
use crate::protocol::output::OutputLimits;
use crate::trace::Trace;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

struct Empty;

impl ServedObjects for Empty {
    fn open<'a>(&'a self, _: &'a Digest) -> BoxFuture<'a, Result<Option<Body>, Error>> {
        std::future::ready(Ok(None)).boxed()
    }
}

/// A request: its head in lower case, and its body.
type Request = (String, Vec<u8>);

/// Serves one request with these bytes.
async fn serve(answer: &'static [u8]) -> (String, tokio::task::JoinHandle<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/step", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        loop {
            stream.read_buf(&mut request).await.unwrap();
            let text = String::from_utf8_lossy(&request).to_lowercase();
            let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
            let field = "\r\ncontent-length: ";
            let len = head.split_once(field).unwrap().1.split("\r\n").next().unwrap();
            let body = head.len() + 4;
            if request.len() == body + len.parse::<usize>().unwrap() {
                stream.write_all(answer).await.unwrap();
                return (head.to_owned(), request.split_off(body));
            }
        }
    });
    (url, served)
}

async fn step(url: &str, timeout_ms: u64, lines: u64) -> Result<Vec<Output>, Failure> {
    let frame = Frame {
        session: "01923456-789a-7fff-bfff-ffffffffffff".parse().unwrap(),
        agent: "clerk".into(),
        metadata: BTreeMap::from([("user".into(), "é".into())]),
        snapshot: 4,
        clock: Timestamp::from_millis(0),
        args: Vec::new(),
    };
    let lines = stream::iter((0..lines).map(|position| {
        let entry = Draft::push(position.to_string(), Attributes::default()).build()?;
        Ok(LogLine { position, event: "push", entry })
    }));
    let endpoint = Endpoint::start(Arc::new(Empty), [7; 16]).unwrap();
    let limits = OutputLimits::default();
    let span = Trace::parse(PARENT, Some("a=b")).unwrap().span([0xab; 8]);
    let head = StepHead { frame: &frame, step_key: "k:3", span: Some(&span), limits: &limits };
    let handler = RemoteHandler::new(url, timeout_ms).unwrap().unwrap();
    match handler.step(head, lines, &endpoint).await {
        Ok(outputs) => Ok(outputs),
        Err(crate::failure::InvokeError::Failure(failure)) => Err(failure),
        Err(crate::failure::InvokeError::Host(error)) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn calls_as_the_protocol_has_it() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"data\":\"eA==\"}";
    let (url, served) = serve(answer).await;
    let outputs = step(&url, 20_000, 2).await.unwrap();
    assert_eq!(outputs[0].body, "x");
    let (head, body) = served.await.unwrap();
    assert!(head.starts_with(
        "post /step?agent=clerk&session=01923456-789a-7fff-bfff-ffffffffffff&snapshot=4 http/1.1"
    ));
    for line in [
        "x-pugmark-session-metadata: {\"user\":\"\\u00e9\"}",
        "x-pugmark-step-key: k:3",
        "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-abababababababab-01",
        "tracestate: a=b",
        "content-type: application/x-ndjson",
    ] {
        assert!(head.lines().any(|other| other == line), "{line} is not in {head}");
    }
    assert!(!head.contains("transfer-encoding"));
    let lines = String::from_utf8(body).unwrap();
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.lines().all(|line| line.starts_with("{\"event\":\"push\",")));
}

#[tokio::test]
async fn a_long_log_has_a_length_too() {
    let (url, served) = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert!(step(&url, 60_000, 20_000).await.unwrap().is_empty());
    let (head, body) = served.await.unwrap();
    assert!(body.len() > 2 * 1024 * 1024);
    assert!(head.contains(&format!("\r\ncontent-length: {}", body.len())));
    assert_eq!(body.split(|byte| *byte == b'\n').count(), 20_001);
    assert!(body.ends_with(b"}\n"));
}

#[tokio::test]
async fn tells_what_it_was_answered() {
    for (answer, message) in [
        (
            &b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"[..],
            "answered with status 503: busy",
        ),
        (b"HTTP/1.1 204 None\r\n\r\n", "answered with status 204"),
        (
            b"HTTP/1.1 302 F\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
            "answered with status 302",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
            "broke off before its answer was whole",
        ),
        (b"nonsense\r\n\r\n", "broke off before its answer was whole"),
    ] {
        let (url, _served) = serve(answer).await;
        let failure = step(&url, 20_000, 1).await.unwrap_err();
        assert_eq!(failure.to_string(), format!("the handler `{url}` {message}"));
    }
}

#[tokio::test]
async fn nobody_there_and_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let failure = step(&url, 200, 1).await.unwrap_err();
    let expected = format!("the handler `{url}` had not answered after 200ms");
    assert_eq!(failure.to_string(), expected);
    assert!(failure.is_limit());
    drop(listener);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let failure = step(&url, 20_000, 1).await.unwrap_err();
    assert_eq!(failure.to_string(), format!("cannot reach the handler `{url}`"));
    assert!(failure.is_unusable());
}

#[test]
fn takes_addresses_only() {
    for url in ["python", "./agent.py", "ftp://h/", "http://", "file:///x"] {
        assert!(RemoteHandler::new(url, 1).unwrap().is_none(), "{url}");
    }
}

#[test]
fn shows_no_secret() {
    let handler = RemoteHandler::new("http://u:p@h:1/a?key=s#f", 1).unwrap().unwrap();
    assert_eq!(handler.name, "http://h:1/a");
}

#[test]
fn knows_this_machine() {
    let loopback = |url: &str| is_loopback(&url.parse().unwrap());
    assert!(loopback("http://127.0.0.1:1/") && loopback("http://127.8.0.1/"));
    assert!(loopback("http://[::1]:1/") && loopback("https://LOCALHOST/"));
    assert!(!loopback("http://10.0.0.1/") && !loopback("http://localhost.example/"));
}

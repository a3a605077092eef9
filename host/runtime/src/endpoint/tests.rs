use std::collections::BTreeMap;

use futures::{FutureExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// Objects in memory, served in chunks; some fail.
#[derive(Default)]
struct Objects {
    bodies: BTreeMap<Digest, Bytes>,
    /// Cannot be opened.
    broken: Option<Digest>,
    /// Fails after its first chunk.
    torn: Option<Digest>,
}

fn failure() -> Error {
    pugmark_log::Error::ObjectNotFound { hash: Digest::of(b"lost") }.into()
}

impl ServedObjects for Objects {
    fn open<'a>(&'a self, hash: &'a Digest) -> BoxFuture<'a, Result<Option<Body>, Error>> {
        let opened = if self.broken == Some(*hash) {
            Err(failure())
        } else {
            Ok(self.bodies.get(hash).cloned().map(|bytes| body(bytes, self.torn == Some(*hash))))
        };
        std::future::ready(opened).boxed()
    }
}

fn body(bytes: Bytes, torn: bool) -> Body {
    let size = bytes.len() as u64;
    let read: ReadRange = Box::new(move |range| {
        let bounds = |at: u64| usize::try_from(at).unwrap();
        let part = bytes.slice(bounds(range.start)..bounds(range.end));
        let chunks: Vec<_> = part.chunks(40_000).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
        let chunks = futures::stream::iter(chunks);
        if torn {
            chunks.take(1).chain(futures::stream::iter([Err(failure())])).boxed()
        } else {
            chunks.boxed()
        }
    });
    Body { size, content_type: Some("text/x-test".into()), read }
}

fn start(bodies: &[&[u8]]) -> Endpoint {
    let bodies = bodies.iter().map(|b| (Digest::of(b), Bytes::copy_from_slice(b))).collect();
    Endpoint::start(Arc::new(Objects { bodies, ..Objects::default() }), [7; 16]).unwrap()
}

fn path(endpoint: &Endpoint, hash: &Digest) -> String {
    let url = endpoint.url(hash);
    let rest = url.strip_prefix("http://").unwrap();
    rest[rest.find('/').unwrap()..].to_owned()
}

/// The whole answer to raw bytes, once the server closes the connection.
async fn raw(endpoint: &Endpoint, request: &str) -> String {
    let mut stream = TcpStream::connect(&endpoint.shared.authority).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A server that closes with something unread resets the connection after its answer.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

/// Status, head in lower case, and body.
async fn ask(endpoint: &Endpoint, request: &str, headers: &str) -> (u16, String, String) {
    let authority = &endpoint.shared.authority;
    let answer = raw(
        endpoint,
        &format!("{request} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n{headers}\r\n"),
    )
    .await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_lowercase(), body.to_owned())
}

#[tokio::test]
async fn serves_an_object() {
    let endpoint = start(&[b"0123456789"]);
    let hash = Digest::of(b"0123456789");
    let path = path(&endpoint, &hash);
    assert!(path.starts_with("/07070707070707070707070707070707/sha256:"));

    let (status, head, body) = ask(&endpoint, &format!("GET {path}"), "").await;
    assert_eq!((status, body.as_str()), (200, "0123456789"));
    let etag = format!("etag: \"{hash}\"");
    for field in ["content-length: 10", "accept-ranges: bytes", "content-type: text/x-test", &etag]
    {
        assert!(head.contains(field), "{field} in {head}");
    }
    assert!(!head.contains("content-encoding"));

    let (status, head, body) = ask(&endpoint, &format!("HEAD {path}"), "").await;
    assert_eq!((status, body.as_str()), (200, ""));
    assert!(head.contains("content-length: 10"));

    let condition = format!("If-None-Match: \"x\", \"{hash}\"\r\n");
    let (status, head, body) = ask(&endpoint, &format!("GET {path}"), &condition).await;
    assert_eq!((status, body.as_str()), (304, ""));
    assert!(head.contains(&etag));
    endpoint.shutdown().await;
}

#[tokio::test]
async fn serves_ranges() {
    let endpoint = start(&[b"0123456789", b""]);
    let hash = Digest::of(b"0123456789");
    let get = format!("GET {}", path(&endpoint, &hash));
    let (status, head, body) = ask(&endpoint, &get, "Range: bytes=2-4\r\n").await;
    assert_eq!((status, body.as_str()), (206, "234"));
    assert!(head.contains("content-range: bytes 2-4/10"));
    assert!(head.contains("content-length: 3"));

    let (status, head, body) = ask(&endpoint, &get, "Range: bytes=10-\r\n").await;
    assert_eq!((status, body.as_str()), (416, ""));
    assert!(head.contains("content-range: bytes */10"));

    let (status, _, body) = ask(&endpoint, &get, "Range: bytes=0-1,3-4\r\n").await;
    assert_eq!((status, body.as_str()), (200, "0123456789"));
    let other = "Range: bytes=2-4\r\nIf-Range: \"x\"\r\n";
    assert_eq!(ask(&endpoint, &get, other).await.0, 200);
    let own = format!("Range: bytes=2-4\r\nIf-Range: \"{hash}\"\r\n");
    assert_eq!(ask(&endpoint, &get, &own).await.0, 206);

    let empty = format!("GET {}", path(&endpoint, &Digest::of(b"")));
    let (status, head, body) = ask(&endpoint, &empty, "Range: bytes=0-\r\n").await;
    assert_eq!((status, body.as_str()), (200, ""));
    assert!(head.contains("content-length: 0"));
}

#[tokio::test]
async fn streams_what_is_large() {
    let large = "0123456789abcdef".repeat(100_000);
    let endpoint = start(&[large.as_bytes()]);
    let path = path(&endpoint, &Digest::of(large.as_bytes()));
    let (status, _, body) = ask(&endpoint, &format!("GET {path}"), "").await;
    assert_eq!(status, 200);
    assert!(body == large);
}

#[tokio::test]
async fn tells_outsiders_nothing() {
    let endpoint = start(&[b"x"]);
    let hash = Digest::of(b"x");
    let path = path(&endpoint, &hash);
    let missing = path.replace(&hash.hex(), &Digest::of(b"y").hex());
    let wrong = path.replace("0707", "0708");
    let short = format!("/07/{hash}");
    for path in [missing.as_str(), &wrong, &short, &format!("/{hash}"), "/", "/a/b", "*"] {
        assert_eq!(ask(&endpoint, &format!("GET {path}"), "").await.0, 404, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let (status, head, _) = ask(&endpoint, &format!("{method} {path}"), "").await;
        assert_eq!(status, 405);
        assert!(head.contains("allow: get, head"));
        assert_eq!(ask(&endpoint, &format!("{method} {wrong}"), "").await.0, 404);
    }
    let authority = endpoint.shared.authority.clone();
    let host = format!("Host: {authority}\r\n");
    for (target, hosts) in [
        (path.clone(), String::new()),
        (path.clone(), "Host: evil.example\r\n".to_owned()),
        (path.clone(), format!("{host}{host}")),
        (format!("http://evil.example{path}"), host.clone()),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n");
        assert!(raw(&endpoint, &request).await.starts_with("HTTP/1.1 403"), "{request}");
    }
    let head = format!("GET {path} HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
    assert!(raw(&endpoint, &head).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn a_store_that_fails_is_told_and_kept() {
    let (broken, torn) = (Digest::of(b"broken"), Digest::of(b"torn"));
    let bodies = [(torn, Bytes::from(vec![b'x'; 100_000]))].into();
    let objects = Objects { bodies, broken: Some(broken), torn: Some(torn) };
    let endpoint = Endpoint::start(Arc::new(objects), [7; 16]).unwrap();
    assert!(endpoint.take_failure().is_none());
    let get = format!("GET {}", path(&endpoint, &broken));
    assert_eq!(ask(&endpoint, &get, "").await.0, 502);
    assert!(endpoint.take_failure().is_some());
    assert!(endpoint.take_failure().is_none());

    // The connection ends before the body does; how much of the answer was sent is open.
    let (path, authority) = (path(&endpoint, &torn), &endpoint.shared.authority);
    let answer = raw(&endpoint, &format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n")).await;
    assert!(answer.len() < 100_000);
    assert!(endpoint.take_failure().is_some());
}

#[tokio::test]
async fn idle_connections_do_not_shut_others_out() {
    let endpoint = start(&[b"x"]);
    let path = path(&endpoint, &Digest::of(b"x"));
    let authority = &endpoint.shared.authority;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    let mut kept = Vec::new();
    for _ in 0..2 * MAX_CONNECTIONS {
        let mut stream = TcpStream::connect(authority).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        kept.push(stream);
    }
}

#[tokio::test]
async fn stops_when_dropped() {
    let endpoint = start(&[b"x"]);
    let authority = endpoint.shared.authority.clone();
    let mut open = TcpStream::connect(&authority).await.unwrap();
    endpoint.shutdown().await;
    assert!(TcpStream::connect(&authority).await.is_err());
    let mut rest = Vec::new();
    let _ = open.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
}

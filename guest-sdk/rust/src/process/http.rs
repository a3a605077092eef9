//! The little of HTTP that reading objects from the runtime's loopback endpoint takes: one GET a
//! connection, `Range`, and a `Content-Length` in the answer.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The longest head of an answer, in bytes.
const MAX_HEAD_LEN: u64 = 16 * 1024;

/// Why a body was not read. The messages name no URL: its path is a secret of the step.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("an object's address does not start with http://")]
    Scheme,
    #[error("the object endpoint cannot be reached")]
    Connection { source: io::Error },
    #[error("the object endpoint answered {status}")]
    Status { status: u16 },
    #[error("the object endpoint's answer cannot be understood: {reason}")]
    Answer { reason: &'static str },
    #[error("the object ended after {found} of {wanted} bytes")]
    Short { found: usize, wanted: usize },
}

/// Exactly `len` bytes from `offset`.
pub(super) fn get(url: &str, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let (authority, path) = parts(url)?;
    let connection = |source| Error::Connection { source };
    let mut stream = if authority.contains(':') {
        TcpStream::connect(authority)
    } else {
        TcpStream::connect((authority, 80))
    }
    .map_err(connection)?;
    let last = offset.saturating_add(len as u64 - 1);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nRange: bytes={offset}-{last}\r\n\
         Accept-Encoding: identity\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).map_err(connection)?;
    let mut answer = BufReader::new(stream);
    let head = Head::read(&mut answer)?;
    let skip = match head.status {
        206 => 0,
        // The whole object: a server may ignore `Range`.
        200 => offset,
        status => return Err(Error::Status { status }),
    };
    let mut answer = answer.take(head.content_length);
    io::copy(&mut (&mut answer).take(skip), &mut io::sink()).map_err(connection)?;
    let mut body = Vec::new();
    answer.take(len as u64).read_to_end(&mut body).map_err(connection)?;
    if body.len() == len { Ok(body) } else { Err(Error::Short { found: body.len(), wanted: len }) }
}

/// Authority and path of an `http` URL.
fn parts(url: &str) -> Result<(&str, &str), Error> {
    let rest = url.strip_prefix("http://").ok_or(Error::Scheme)?;
    Ok(match rest.find('/') {
        Some(end) => rest.split_at(end),
        None => (rest, "/"),
    })
}

#[derive(Debug)]
struct Head {
    status: u16,
    content_length: u64,
}

impl Head {
    fn read(answer: &mut impl BufRead) -> Result<Self, Error> {
        let unclear = |reason| Error::Answer { reason };
        let mut head = answer.take(MAX_HEAD_LEN);
        let mut line = String::new();
        let mut next = |line: &mut String| {
            line.clear();
            head.read_line(line).map_err(|source| Error::Connection { source })?;
            if line.ends_with('\n') { Ok(()) } else { Err(unclear("its head does not end")) }
        };
        next(&mut line)?;
        let status = line
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.split(' ').nth(1))
            .and_then(|status| status.trim_end().parse().ok())
            .ok_or(unclear("no status"))?;
        let mut content_length = None;
        loop {
            next(&mut line)?;
            let header = line.trim_end();
            if header.is_empty() {
                break;
            }
            let (name, value) =
                header.split_once(':').ok_or(unclear("a header without a colon"))?;
            if name.eq_ignore_ascii_case("content-length") {
                content_length = value.trim().parse().ok();
            }
            if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(unclear("it comes in chunks"));
            }
        }
        let content_length = content_length.ok_or(unclear("no content length"))?;
        Ok(Self { status, content_length })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Reads with one request to a server that gives `answer`; also returns the request.
    fn exchange(answer: &'static str, offset: u64, len: usize) -> (Result<Vec<u8>, Error>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut request = String::new();
            while !request.ends_with("\r\n\r\n") {
                stream.read_line(&mut request).unwrap();
            }
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
            request
        });
        let result = get(&format!("http://{address}/secret/object"), offset, len);
        (result, server.join().unwrap().replace(&address.to_string(), "HOST"))
    }

    #[test]
    fn asks_for_a_range() {
        let answer = "HTTP/1.1 206 Partial Content\r\ncontent-length: 3\r\nETag: \"x\"\r\n\r\nell";
        let (body, request) = exchange(answer, 1, 3);
        assert_eq!(body.unwrap(), b"ell");
        assert_eq!(
            request,
            "GET /secret/object HTTP/1.1\r\nHost: HOST\r\nRange: bytes=1-3\r\n\
             Accept-Encoding: identity\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn takes_a_whole_object_for_an_answer() {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(exchange(answer, 0, 5).0.unwrap(), b"hello");
        assert_eq!(exchange(answer, 1, 3).0.unwrap(), b"ell");
    }

    #[test]
    fn says_what_went_wrong() {
        let (missing, _) = exchange("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 0, 1);
        assert_eq!(missing.unwrap_err().to_string(), "the object endpoint answered 404");
        let (short, _) = exchange("HTTP/1.1 206 x\r\nContent-Length: 9\r\n\r\nab", 0, 9);
        assert!(matches!(short, Err(Error::Short { found: 2, wanted: 9 })));
        let (chunked, _) = exchange("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 1);
        assert!(matches!(chunked, Err(Error::Answer { reason: "it comes in chunks" })));
        let (endless, _) = exchange("HTTP/1.1 200 OK\r\nA: b", 0, 1);
        assert!(matches!(endless, Err(Error::Answer { reason: "its head does not end" })));
        assert!(matches!(get("pugmark:sha256:0", 0, 1), Err(Error::Scheme)));
    }
}

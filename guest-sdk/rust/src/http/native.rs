//! Requests of a handler that is a subprocess: HTTP/1.1 without TLS, a connection each.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::{Error, Request, Response};

/// The longest head of a response, in bytes.
const MAX_HEAD_LEN: u64 = 64 * 1024;

/// The longest body of a response, in bytes.
const MAX_BODY_LEN: u64 = 32 * 1024 * 1024;

/// Header fields that are about the connection, and the length, which is that of the body.
const OWN: [&str; 4] = ["host", "content-length", "connection", "transfer-encoding"];

fn no_answer(code: impl ToString) -> Error {
    Error::NoAnswer { code: code.to_string() }
}

fn broken(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => no_answer("connection-refused"),
        _ => no_answer(format!("connection-terminated: {error}")),
    }
}

pub(super) fn send(request: &Request) -> Result<Response, Error> {
    let (scheme, authority, path) = request.parts()?;
    if scheme != "http" {
        let reason = "outside the sandbox, this client speaks http alone";
        return Err(Error::Invalid { reason });
    }
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let stream = if has_port {
        TcpStream::connect(authority)
    } else {
        TcpStream::connect((authority.trim_matches(['[', ']']), 80))
    };
    let mut stream = stream.map_err(broken)?;
    stream.write_all(&head(request, authority, path)?).map_err(broken)?;
    stream.write_all(&request.body).map_err(broken)?;
    receive(BufReader::new(stream), request.method == "HEAD")
}

fn head(request: &Request, authority: &str, path: &str) -> Result<Vec<u8>, Error> {
    let mut head = format!("{} {path} HTTP/1.1\r\nhost: {authority}\r\n", request.method);
    for (name, value) in &request.headers {
        if OWN.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            let reason = "one of its header fields cannot be sent by a handler";
            return Err(Error::Invalid { reason });
        }
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\nconnection: close", request.body.len()));
    if head.split("\r\n").any(|line| line.contains(['\r', '\n', '\0'])) || path.contains(' ') {
        return Err(Error::Invalid { reason: "it has characters that cannot be sent" });
    }
    head.push_str("\r\n\r\n");
    Ok(head.into_bytes())
}

/// How long a body is.
enum Length {
    Known(u64),
    Chunks,
    ToTheEnd,
}

fn receive(mut stream: impl BufRead, is_head: bool) -> Result<Response, Error> {
    loop {
        let (status, headers) = receive_head(&mut stream)?;
        // Of those that announce another response, none has a body.
        if (100..200).contains(&status) {
            continue;
        }
        let length = match (is_head || status == 204 || status == 304, length(&headers)?) {
            (true, _) => Length::Known(0),
            (false, length) => length,
        };
        let body = receive_body(&mut stream, length)?;
        return Ok(Response { status, headers, body });
    }
}

type Headers = Vec<(String, Vec<u8>)>;

fn receive_head(stream: &mut impl BufRead) -> Result<(u16, Headers), Error> {
    let unclear = || no_answer("HTTP-protocol-error");
    let mut head = stream.take(MAX_HEAD_LEN);
    let first = line(&mut head)?;
    let status = first
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| std::str::from_utf8(rest.get(2..5)?).ok()?.parse().ok())
        .ok_or_else(unclear)?;
    let mut headers = Vec::new();
    loop {
        let field = line(&mut head)?;
        if field.is_empty() {
            return Ok((status, headers));
        }
        let colon = field.iter().position(|byte| *byte == b':').ok_or_else(unclear)?;
        let name = std::str::from_utf8(&field[..colon]).map_err(|_| unclear())?;
        headers.push((name.to_ascii_lowercase(), field[colon + 1..].trim_ascii().to_vec()));
    }
}

fn line(stream: &mut impl BufRead) -> Result<Vec<u8>, Error> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).map_err(broken)?;
    if line.pop() != Some(b'\n') {
        return Err(no_answer("connection-terminated"));
    }
    line.pop_if(|byte| *byte == b'\r');
    Ok(line)
}

fn length(headers: &Headers) -> Result<Length, Error> {
    let value = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, v)| v);
    if let Some(coding) = value("transfer-encoding") {
        let is_chunked = coding.eq_ignore_ascii_case(b"chunked");
        return if is_chunked { Ok(Length::Chunks) } else { Err(no_answer("HTTP-protocol-error")) };
    }
    let Some(length) = value("content-length") else { return Ok(Length::ToTheEnd) };
    let length = std::str::from_utf8(length).ok().and_then(|length| length.parse().ok());
    length.map(Length::Known).ok_or_else(|| no_answer("HTTP-protocol-error"))
}

fn receive_body(stream: &mut impl BufRead, length: Length) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    match length {
        Length::Known(length) => append(stream, length, &mut body)?,
        Length::ToTheEnd => {
            stream.take(MAX_BODY_LEN + 1).read_to_end(&mut body).map_err(broken)?;
            check(body.len() as u64)?;
        }
        Length::Chunks => loop {
            let size = line(stream)?;
            let digits = size.split(|byte| *byte == b';').next().unwrap_or_default();
            let digits = std::str::from_utf8(digits.trim_ascii()).unwrap_or_default();
            let size =
                u64::from_str_radix(digits, 16).map_err(|_| no_answer("HTTP-protocol-error"))?;
            if size == 0 {
                break;
            }
            append(stream, size, &mut body)?;
            line(stream)?;
        },
    }
    Ok(body)
}

fn check(len: u64) -> Result<(), Error> {
    if len > MAX_BODY_LEN { Err(no_answer("the response is too large")) } else { Ok(()) }
}

fn append(stream: &mut impl BufRead, len: u64, body: &mut Vec<u8>) -> Result<(), Error> {
    check((body.len() as u64).saturating_add(len))?;
    let read = stream.take(len).read_to_end(body).map_err(broken)?;
    if (read as u64) < len { Err(no_answer("connection-terminated")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Sends a request to a server that gives `answer`; also returns what the server got.
    fn exchange(request: Request, answer: &'static str) -> (Result<Response, Error>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let len = request.body.len();
        let server = thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut got = String::new();
            while !got.ends_with("\r\n\r\n") {
                stream.read_line(&mut got).unwrap();
            }
            let mut body = vec![0; len];
            stream.read_exact(&mut body).unwrap();
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
            got + std::str::from_utf8(&body).unwrap()
        });
        let url = format!("http://{authority}{}", request.url);
        let response = Request { url, ..request }.send();
        (response, server.join().unwrap().replace(&authority, "HOST"))
    }

    #[test]
    fn asks_and_is_answered() {
        let answer = "HTTP/1.1 201 Made\r\nX-A:  b \r\nContent-Length: 2\r\n\r\nok and more";
        let request = Request::post("/v1?x").header("x-y", "z").json(&[1]);
        let (response, got) = exchange(request, answer);
        let response = response.unwrap();
        assert_eq!((response.status(), response.body()), (201, &b"ok"[..]));
        assert_eq!((response.header("x-a"), response.header("none")), (Some("b"), None));
        assert_eq!(
            got,
            "POST /v1?x HTTP/1.1\r\nhost: HOST\r\nx-y: z\r\ncontent-type: application/json\r\n\
             content-length: 3\r\nconnection: close\r\n\r\n[1]"
        );
    }

    #[test]
    fn takes_bodies_of_all_lengths() {
        let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                      3;x=y\r\nabc\r\n0a\r\n0123456789\r\n0\r\n\r\n";
        for (answer, body) in [
            (chunks, "abc0123456789"),
            ("HTTP/1.0 200 OK\r\n\r\nto the end", "to the end"),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", "x"),
            ("HTTP/1.1 204 None\r\n\r\n", ""),
        ] {
            let (response, _) = exchange(Request::get("/"), answer);
            assert_eq!(response.unwrap().text(), body);
        }
    }

    #[test]
    fn says_what_went_wrong() {
        let code = |answer| match exchange(Request::get("/"), answer).0 {
            Err(Error::NoAnswer { code }) => code,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            code("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc"),
            "connection-terminated"
        );
        assert_eq!(code("HTTP/1.1 200 OK\r\n"), "connection-terminated");
        assert_eq!(code("SSH-2.0\r\n\r\n"), "HTTP-protocol-error");
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = Request::get(format!("http://{free}")).send();
        assert_eq!(refused, Err(no_answer("connection-refused")));
        for request in [
            Request::get("https://localhost/"),
            Request::get("http://localhost/").header("host", "x"),
            Request::get("http://localhost/").header("x", "a\r\nb: c"),
        ] {
            let sent = request.send();
            assert!(
                matches!(sent, Err(Error::Invalid { .. } | Error::NoAnswer { .. })),
                "{sent:?}"
            );
        }
    }
}

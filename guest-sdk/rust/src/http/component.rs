//! Requests through `wasi:http`.

use bindings::wasi::http::outgoing_handler::handle;
use bindings::wasi::http::types::{
    ErrorCode, Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme,
};
use bindings::wasi::io::streams::StreamError;

use super::{Error, Request, Response};

mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        inline: "
            package pugmark:guest;
            world http {
                import wasi:http/outgoing-handler@0.2.0;
            }
        ",
        world: "pugmark:guest/http",
        generate_all,
    });
}

/// What one write may carry, in bytes.
const WRITE_LEN: usize = 4096;

/// What one read asks for, in bytes.
const READ_LEN: u64 = 64 * 1024;

fn invalid(reason: &'static str) -> Error {
    Error::Invalid { reason }
}

fn no_answer(code: ErrorCode) -> Error {
    Error::NoAnswer { code: name(&code) }
}

/// A code as WASI spells it.
fn name(code: &ErrorCode) -> String {
    let name = match code {
        ErrorCode::DnsError(_) => "DNS-error",
        ErrorCode::DestinationUnavailable => "destination-unavailable",
        ErrorCode::ConnectionRefused => "connection-refused",
        ErrorCode::ConnectionTerminated => "connection-terminated",
        ErrorCode::TlsProtocolError => "TLS-protocol-error",
        ErrorCode::TlsCertificateError => "TLS-certificate-error",
        ErrorCode::HttpRequestDenied => "HTTP-request-denied",
        ErrorCode::HttpProtocolError => "HTTP-protocol-error",
        ErrorCode::InternalError(_) => "internal-error",
        other => return format!("{other:?}"),
    };
    name.to_owned()
}

pub(super) fn send(request: &Request) -> Result<Response, Error> {
    let (scheme, authority, path) = request.parts()?;
    let field = |(name, value): &(String, String)| (name.clone(), value.clone().into_bytes());
    let fields: Vec<(String, Vec<u8>)> = request.headers.iter().map(field).collect();
    let fields = Fields::from_list(&fields)
        .map_err(|_| invalid("one of its header fields cannot be sent by a handler"))?;
    let outgoing = OutgoingRequest::new(fields);
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(invalid("its URL is neither http nor https")),
    };
    let refused = |reason| move |()| invalid(reason);
    outgoing.set_method(&method(&request.method)).map_err(refused("its method is none"))?;
    outgoing.set_scheme(Some(&scheme)).map_err(refused("its URL is neither http nor https"))?;
    outgoing.set_authority(Some(authority)).map_err(refused("the host of its URL is none"))?;
    outgoing.set_path_with_query(Some(path)).map_err(refused("the path of its URL is none"))?;
    let body = outgoing.body().map_err(refused("its body cannot be written"))?;
    let future = handle(outgoing, None).map_err(no_answer)?;
    write(&body, &request.body)?;
    OutgoingBody::finish(body, None).map_err(no_answer)?;
    future.subscribe().block();
    match future.get() {
        Some(Ok(Ok(response))) => read(&response),
        Some(Ok(Err(code))) => Err(no_answer(code)),
        Some(Err(())) | None => Err(Error::NoAnswer { code: "internal-error".to_owned() }),
    }
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

fn write(body: &OutgoingBody, bytes: &[u8]) -> Result<(), Error> {
    let stream = body.write().map_err(|()| invalid("its body cannot be written"))?;
    for piece in bytes.chunks(WRITE_LEN) {
        let written = stream.blocking_write_and_flush(piece);
        written.map_err(|_| invalid("its body cannot be written"))?;
    }
    Ok(())
}

fn read(response: &IncomingResponse) -> Result<Response, Error> {
    let broken = || Error::NoAnswer { code: "connection-terminated".to_owned() };
    let status = response.status();
    let headers = response.headers().entries();
    let incoming = response.consume().map_err(|()| broken())?;
    let stream = incoming.stream().map_err(|()| broken())?;
    let mut body = Vec::new();
    loop {
        match stream.blocking_read(READ_LEN) {
            Ok(piece) => body.extend(piece),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(_)) => return Err(broken()),
        }
    }
    Ok(Response { status, headers, body })
}

//! Requests, step by step.

use serde_json::{Value, json};

use crate::wasi::http::outgoing_handler::handle;
use crate::wasi::http::types::{
    Fields, FutureIncomingResponse, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme,
};
use crate::wasi::io::streams::StreamError;

/// A request that is not sent yet.
pub fn request(
    method: &str,
    url: &str,
    headers: &[(String, Vec<u8>)],
) -> Result<OutgoingRequest, String> {
    let fields = Fields::from_list(headers).map_err(|error| format!("{error:?}"))?;
    let (scheme, rest) = url.split_once("://").ok_or("no scheme")?;
    let (authority, path) = match rest.find('/') {
        Some(end) => rest.split_at(end),
        None => (rest, "/"),
    };
    let scheme = if scheme == "http" { Scheme::Http } else { Scheme::Https };
    let request = OutgoingRequest::new(fields);
    request.set_method(&Method::Other(method.to_owned())).map_err(|()| "method")?;
    request.set_scheme(Some(&scheme)).map_err(|()| "scheme")?;
    request.set_authority(Some(authority)).map_err(|()| "authority")?;
    request.set_path_with_query(Some(path)).map_err(|()| "path")?;
    Ok(request)
}

/// Hands a request over, and then writes its body.
pub fn send(request: OutgoingRequest, body: &[u8]) -> Result<FutureIncomingResponse, String> {
    let outgoing = request.body().map_err(|()| "body")?;
    let future = handle(request, None).map_err(|code| format!("{code:?}"))?;
    write(&outgoing, body)?;
    OutgoingBody::finish(outgoing, None).map_err(|code| format!("{code:?}"))?;
    Ok(future)
}

pub fn write(outgoing: &OutgoingBody, body: &[u8]) -> Result<(), String> {
    let stream = outgoing.write().map_err(|()| "stream")?;
    for piece in body.chunks(4096) {
        stream.blocking_write_and_flush(piece).map_err(|error| format!("{error:?}"))?;
    }
    Ok(())
}

/// What a request came to.
pub fn answer(future: &FutureIncomingResponse) -> Value {
    future.subscribe().block();
    match future.get() {
        None => json!("not ready"),
        Some(Err(())) => json!("taken"),
        Some(Ok(Err(code))) => json!(format!("{code:?}")),
        Some(Ok(Ok(response))) => seen(&response),
    }
}

fn seen(response: &IncomingResponse) -> Value {
    let fields = response.headers().entries();
    // When the server answered is not what is looked at here.
    let fields: Vec<Value> = fields
        .iter()
        .filter(|(name, _)| name != "date")
        .map(|(name, value)| json!([name, String::from_utf8_lossy(value)]))
        .collect();
    let (body, pieces) = body(response);
    json!({
        "status": response.status(), "headers": fields, "pieces": pieces,
        "body": String::from_utf8_lossy(&body),
    })
}

/// The body, and the lengths of the pieces that it came in.
pub fn body(response: &IncomingResponse) -> (Vec<u8>, Vec<usize>) {
    let incoming = response.consume().expect("it was not consumed before");
    let stream = incoming.stream().expect("it was not taken before");
    let (mut body, mut pieces) = (Vec::new(), Vec::new());
    loop {
        match stream.read(1 << 20) {
            Ok(piece) => {
                pieces.push(piece.len());
                body.extend(piece);
            }
            Err(StreamError::Closed) => return (body, pieces),
            Err(StreamError::LastOperationFailed(_)) => panic!("a stream failed"),
        }
    }
}

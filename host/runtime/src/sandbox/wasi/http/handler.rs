//! Making requests.

use bytes::Bytes;
use wasmtime::component::Resource;

use super::bindings::wasi::http::outgoing_handler;
use super::bindings::wasi::http::types::{DnsErrorPayload, ErrorCode, Method, Scheme};
use super::exchange::{Exchange, Settled};
use super::request::{OutgoingRequest, RequestOptions};
use super::response::FutureIncomingResponse;
use super::syntax;
use crate::sandbox::outside::{Refusal, Request, Response, Scheme as OutsideScheme};
use crate::sandbox::state::{GuestState, Phase};
use crate::sandbox::watchdog::timed;

impl outgoing_handler::Host for GuestState {
    /// Takes a request. It goes out once its body is finished.
    fn handle(
        &mut self,
        request: Resource<OutgoingRequest>,
        options: Option<Resource<RequestOptions>>,
    ) -> wasmtime::Result<Result<Resource<FutureIncomingResponse>, ErrorCode>> {
        let request = self.table.delete(request)?;
        if let Some(options) = options {
            self.table.delete(options)?;
        }
        let decides = matches!(self.phase, Phase::Decide | Phase::Command);
        if !decides || self.outside.is_none() {
            return Ok(Err(ErrorCode::HttpRequestDenied));
        }
        let exchange = request.exchange.clone();
        match head(request) {
            Ok(head) => exchange.hand_over(head),
            Err(code) => return Ok(Err(code)),
        }
        self.answer_if_due(&exchange)?;
        self.hand_out(FutureIncomingResponse(exchange)).map(Ok)
    }
}

impl GuestState {
    /// Has a request answered, if it is handed over and whole.
    pub(super) fn answer_if_due(&mut self, exchange: &Exchange) -> wasmtime::Result<()> {
        let settled = match exchange.take_due() {
            None => return Ok(()),
            Some(Err(code)) => Err(code),
            Some(Ok(request)) => self.answer(request)?,
        };
        exchange.settle(settled);
        Ok(())
    }

    fn answer(&mut self, mut request: Request) -> wasmtime::Result<Settled> {
        // The length is that of what is there; a guest that says another one has lost something.
        let is_length = |(name, _): &(String, Bytes)| name == "content-length";
        let length = request.body.len().to_string();
        if request.headers.iter().any(|field| is_length(field) && field.1 != length.as_bytes()) {
            return Ok(Err(ErrorCode::HttpRequestBodySize(Some(request.body.len() as u64))));
        }
        request.headers.retain(|field| !is_length(field));
        self.http.count_request()?;
        // Its body may have been finished in a call that cannot make requests.
        let decides = matches!(self.phase, Phase::Decide | Phase::Command);
        let Some(outside) = self.outside.as_mut().filter(|_| decides) else {
            return Ok(Err(ErrorCode::HttpRequestDenied));
        };
        let (answer, waited_ms) = timed(|| outside.ask(request));
        self.http.waited(waited_ms);
        match answer {
            Ok(Ok(response)) => {
                let charge = self.http.charge(size(&response))?;
                Ok(Ok((response, charge)))
            }
            Ok(Err(refusal)) => Ok(Err(code(refusal))),
            Err(error) => Err(self.abort(error)),
        }
    }
}

/// What a response takes of the host's memory.
fn size(response: &Response) -> u64 {
    let fields: usize = response.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    (response.body.len() + fields) as u64
}

/// A request without its body, checked as far as that needs no rules.
fn head(request: OutgoingRequest) -> Result<Request, ErrorCode> {
    let scheme = match request.scheme {
        Some(Scheme::Http) => OutsideScheme::Http,
        Some(Scheme::Https) | None => OutsideScheme::Https,
        Some(Scheme::Other(_)) => return Err(ErrorCode::HttpRequestUriInvalid),
    };
    let method = match request.method {
        Method::Get => "GET".to_owned(),
        Method::Head => "HEAD".to_owned(),
        Method::Post => "POST".to_owned(),
        Method::Put => "PUT".to_owned(),
        Method::Delete => "DELETE".to_owned(),
        Method::Options => "OPTIONS".to_owned(),
        Method::Trace => "TRACE".to_owned(),
        Method::Patch => "PATCH".to_owned(),
        Method::Other(name) if syntax::is_method(&name) => name,
        Method::Connect | Method::Other(_) => return Err(ErrorCode::HttpRequestMethodInvalid),
    };
    let path = request.path.unwrap_or_else(|| "/".to_owned());
    let Some((host, port)) = request.authority.as_deref().and_then(syntax::authority) else {
        return Err(ErrorCode::HttpRequestUriInvalid);
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let authority = match port.filter(|port| *port != scheme.default_port()) {
        Some(port) => format!("{host}:{port}"),
        None => host,
    };
    let field = |(name, value): &(String, Vec<u8>)| {
        (name.to_ascii_lowercase(), Bytes::copy_from_slice(value))
    };
    let headers = request.fields.entries().iter().map(field).collect();
    Ok(Request { method, scheme, authority, path, headers, body: Bytes::new() })
}

/// What a guest is told.
fn code(refusal: Refusal) -> ErrorCode {
    match refusal {
        Refusal::Denied => ErrorCode::HttpRequestDenied,
        Refusal::NoAddress => ErrorCode::DnsError(DnsErrorPayload { rcode: None, info_code: None }),
        Refusal::ConnectionRefused => ErrorCode::ConnectionRefused,
        Refusal::Unreachable => ErrorCode::DestinationUnavailable,
        Refusal::ConnectionTerminated => ErrorCode::ConnectionTerminated,
        Refusal::TlsFailed => ErrorCode::TlsProtocolError,
        Refusal::TlsCertificate => ErrorCode::TlsCertificateError,
        Refusal::Protocol => ErrorCode::HttpProtocolError,
        Refusal::ResponseRefused => ErrorCode::InternalError(None),
    }
}

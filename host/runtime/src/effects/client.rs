//! Makes one request at a time, each on a connection of its own to an address that was checked.
//!
//! No proxy, no redirection, no decompression, no cookie: what the server says is what the handler
//! gets, but for fields about the connection, and `set-cookie`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::{Either, select};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::rules::Destination;
use super::secret::Secret;
use crate::error::Error;
use crate::sandbox::{
    Exceeded, Failure, HttpExceeded, HttpLimits, Refusal, Request, Response, Scheme, StepError,
    is_of_connection,
};

/// The most fields of a response.
const MAX_FIELDS: usize = 256;

/// Of what cookies are made of. A handler has no place for them but the log.
const COOKIES: [&str; 2] = ["set-cookie", "set-cookie2"];

/// Makes requests.
pub(super) struct Client {
    /// Made with the first request over TLS.
    tls: Mutex<Option<Arc<ClientConfig>>>,
}

/// Why there is no response.
pub(super) enum NoResponse {
    /// What the handler is told, and what the user is.
    Refused(Refusal, String),
    /// What ends the step.
    Ends(StepError),
}

impl From<HttpExceeded> for NoResponse {
    fn from(exceeded: HttpExceeded) -> Self {
        Self::Ends(Failure::from(Exceeded::from(exceeded)).into())
    }
}

fn refused(refusal: Refusal, reason: impl ToString) -> NoResponse {
    NoResponse::Refused(refusal, reason.to_string())
}

/// A request on its way.
pub(super) struct Call<'a> {
    pub(super) request: &'a Request,
    pub(super) to: &'a Destination,
    pub(super) secrets: &'a [Secret],
    pub(super) limits: &'a HttpLimits,
}

impl Call<'_> {
    /// What messages call it: without its path, which may say more than they should.
    fn origin(&self) -> String {
        format!("{}://{}", self.request.scheme.name(), self.request.authority)
    }
}

impl Client {
    pub(super) fn new() -> Self {
        Self { tls: Mutex::default() }
    }

    /// Makes a request.
    pub(super) async fn send(&self, call: &Call<'_>) -> Result<Response, NoResponse> {
        let limit_ms = call.limits.time_ms;
        let sent = timeout(Duration::from_millis(limit_ms), self.exchange(call)).await;
        sent.unwrap_or_else(|_| Err(HttpExceeded::Time { url: call.origin(), limit_ms }.into()))
    }

    async fn exchange(&self, call: &Call<'_>) -> Result<Response, NoResponse> {
        let limit_ms = call.limits.connect_ms;
        let connected = timeout(Duration::from_millis(limit_ms), self.connect(call.to)).await;
        let exceeded = |_| HttpExceeded::Connect { url: call.origin(), limit_ms };
        let stream = connected.map_err(exceeded)??;
        match stream {
            Stream::Plain(stream) => exchange_on(call, stream).await,
            Stream::Tls(stream) => exchange_on(call, *stream).await,
        }
    }

    /// Connects to the first address that is allowed and answers.
    async fn connect(&self, to: &Destination) -> Result<Stream, NoResponse> {
        let addresses = match to.known_addresses() {
            Some(addresses) => addresses,
            None => look_up(to).await?,
        };
        let allowed = to.allowed(&addresses).map_err(|reason| refused(Refusal::Denied, reason))?;
        let mut failure = refused(Refusal::NoAddress, "its name has no address");
        for address in allowed {
            match TcpStream::connect(SocketAddr::new(address, to.port)).await {
                Ok(stream) => return self.secure(to, stream).await,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    failure = refused(Refusal::ConnectionRefused, error);
                }
                Err(error) => failure = refused(Refusal::Unreachable, error),
            }
        }
        Err(failure)
    }

    async fn secure(&self, to: &Destination, stream: TcpStream) -> Result<Stream, NoResponse> {
        if to.scheme == Scheme::Http {
            return Ok(Stream::Plain(stream));
        }
        let name = ServerName::try_from(to.host.clone());
        let name = name.map_err(|error| refused(Refusal::TlsFailed, error))?;
        let connector = TlsConnector::from(self.tls()?);
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err(error) => {
                let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
                let refusal = match cause {
                    Some(rustls::Error::InvalidCertificate(_)) => Refusal::TlsCertificate,
                    _ => Refusal::TlsFailed,
                };
                Err(refused(refusal, error))
            }
        }
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, NoResponse> {
        let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = &*tls {
            return Ok(Arc::clone(config));
        }
        let unusable = |error: rustls::Error| {
            let action = "make TLS connections".to_owned();
            NoResponse::Ends(Error::Io { action, source: io::Error::other(error) }.into())
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(BuilderVerifierExt::with_platform_verifier)
            .map_err(unusable)?
            .with_no_client_auth();
        let config = Arc::new(config);
        *tls = Some(Arc::clone(&config));
        Ok(config)
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

async fn look_up(to: &Destination) -> Result<Vec<IpAddr>, NoResponse> {
    let found = tokio::net::lookup_host((to.host.as_str(), to.port)).await;
    let found = found.map_err(|error| refused(Refusal::NoAddress, error))?;
    Ok(found.map(|address| address.ip()).collect())
}

async fn exchange_on<S>(call: &Call<'_>, stream: S) -> Result<Response, NoResponse>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let head_limit = usize::try_from(call.limits.head_bytes).unwrap_or(usize::MAX);
    let mut builder = http1::Builder::new();
    builder.max_headers(MAX_FIELDS).max_header_size(head_limit);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(|error| broken(call, &error))?;
    let request = outgoing(call)?;
    let answered = async {
        let response = sender.send_request(request).await.map_err(|error| broken(call, &error))?;
        received(call, response).await
    };
    let (connection, answered) = (Box::pin(connection), Box::pin(answered));
    // The connection is what moves the bytes; what it fails with, the request fails with.
    match select(answered, connection).await {
        Either::Left((answer, _)) => answer,
        Either::Right((_, answered)) => answered.await,
    }
}

/// The request as it is sent. Secrets come in here, and nowhere before.
fn outgoing(call: &Call<'_>) -> Result<hyper::Request<Full<Bytes>>, NoResponse> {
    let Request { method, authority, path, headers, body, .. } = call.request;
    let mut fields = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(refused(Refusal::Protocol, "one of its header fields cannot be sent"));
        };
        fields.append(name, value);
    }
    let agent = HeaderValue::from_static(concat!("pugmark/", env!("CARGO_PKG_VERSION")));
    fields.entry(USER_AGENT).or_insert(agent);
    for secret in call.secrets.iter().filter(|secret| secret.is_for(call.to)) {
        secret.add(&mut fields);
    }
    let invalid = |_| refused(Refusal::Protocol, "its authority cannot be sent");
    fields.insert(HOST, HeaderValue::from_str(authority).map_err(invalid)?);
    let mut request = hyper::Request::builder()
        .method(method.as_str())
        .uri(path.as_str())
        .body(Full::new(body.clone()))
        .map_err(|error| refused(Refusal::Protocol, error))?;
    *request.headers_mut() = fields;
    Ok(request)
}

async fn received(
    call: &Call<'_>,
    response: hyper::Response<hyper::body::Incoming>,
) -> Result<Response, NoResponse> {
    let (head, mut incoming) = response.into_parts();
    let is_hidden = |name: &str| is_of_connection(name) || COOKIES.contains(&name);
    let fields = head.headers.iter().filter(|(name, _)| !is_hidden(name.as_str()));
    let headers = fields
        .map(|(name, value)| (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())))
        .collect();
    let limit = call.limits.response_bytes;
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| broken(call, &error))?;
        let Ok(piece) = frame.into_data() else { continue };
        if (body.len() + piece.len()) as u64 > limit {
            return Err(HttpExceeded::Response { url: call.origin(), limit }.into());
        }
        body.extend_from_slice(&piece);
    }
    let response = Response { status: head.status.as_u16(), headers, body: body.freeze() };
    let mut sent = call.secrets.iter().filter(|secret| secret.is_for(call.to));
    match sent.find_map(|secret| secret.refuses(&response)) {
        Some(reason) => Err(refused(Refusal::ResponseRefused, reason)),
        None => Ok(response),
    }
}

fn broken(call: &Call<'_>, error: &hyper::Error) -> NoResponse {
    if error.is_parse_too_large() {
        return HttpExceeded::Head { limit: call.limits.head_bytes }.into();
    }
    let refusal = if error.is_parse() { Refusal::Protocol } else { Refusal::ConnectionTerminated };
    refused(refusal, error)
}

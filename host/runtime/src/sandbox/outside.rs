//! What a guest can ask of the world outside its session: HTTP requests, one after the other.
//!
//! Who answers is the caller's affair: the network, with everything recorded, or a record of it. To
//! the guest an answer takes no time, and what it is told of a failure is one of a few constants.

use bytes::Bytes;

use super::failure::StepError;

/// A request, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method: a token.
    pub method: String,
    /// The scheme.
    pub scheme: Scheme,
    /// Host and port; the port left out where it is the scheme's own.
    pub authority: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Names in lower case, and values, in the guest's order.
    pub headers: Vec<(String, Bytes)>,
    /// The body.
    pub body: Bytes,
}

impl Request {
    /// The request's address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme.name(), self.authority, self.path)
    }
}

/// The scheme of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl Scheme {
    /// As addresses have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port where none is named.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A response, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names in lower case, and values, in the server's order.
    pub headers: Vec<(String, Bytes)>,
    /// The body.
    pub body: Bytes,
}

/// What becomes of a request.
pub type Answer = Result<Response, Refusal>;

/// Why a request has no response: all that a guest is told of it. The names are WASI's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not allowed.
    Denied,
    /// The name has no address.
    NoAddress,
    /// Nothing listens there.
    ConnectionRefused,
    /// There is no way there.
    Unreachable,
    /// The connection ended before the response did.
    ConnectionTerminated,
    /// The TLS handshake failed.
    TlsFailed,
    /// The server's certificate is not trusted.
    TlsCertificate,
    /// The answer is no HTTP.
    Protocol,
    /// The host refuses the response.
    ResponseRefused,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Denied,
        Self::NoAddress,
        Self::ConnectionRefused,
        Self::Unreachable,
        Self::ConnectionTerminated,
        Self::TlsFailed,
        Self::TlsCertificate,
        Self::Protocol,
        Self::ResponseRefused,
    ];

    /// The name of the error code that the guest gets; persisted.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Denied => "HTTP-request-denied",
            Self::NoAddress => "DNS-error",
            Self::ConnectionRefused => "connection-refused",
            Self::Unreachable => "destination-unavailable",
            Self::ConnectionTerminated => "connection-terminated",
            Self::TlsFailed => "TLS-protocol-error",
            Self::TlsCertificate => "TLS-certificate-error",
            Self::Protocol => "HTTP-protocol-error",
            Self::ResponseRefused => "internal-error",
        }
    }

    /// The one with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.name() == name)
    }
}

/// Answers the requests of one step.
pub trait Outside: Send {
    /// Answers a request. Blocks.
    ///
    /// # Errors
    /// What ends the step: the guest does not learn of it.
    fn ask(&mut self, request: Request) -> Result<Answer, StepError>;

    /// The guest is done. To be called once it has answered well.
    ///
    /// # Errors
    /// If what it asked is less than what is recorded.
    fn finish(&mut self) -> Result<(), StepError>;
}

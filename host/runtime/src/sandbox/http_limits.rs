//! The bounds of what a step asks by HTTP. Like all limits they are none of the guest's business:
//! whoever meets one ends its step, and nothing is recorded of the request that did.

use super::limits::{size, twice};

/// Names that [`HttpLimits::set`] takes: counts, sizes and times.
pub(super) const NAMES: [&str; 7] = [
    "http-requests",
    "http-request",
    "http-response",
    "http-head",
    "http-held",
    "http-time",
    "http-connect",
];

/// What the requests of a step may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// How many requests. Default: 100.
    pub requests: u32,
    /// Bytes of the body of one request. Default: 16 MiB.
    pub request_bytes: u64,
    /// Bytes of the body of one response. Default: 32 MiB.
    pub response_bytes: u64,
    /// Bytes of all header fields of one request or response. Default: 64 KiB.
    pub head_bytes: u64,
    /// Bytes of requests that are being made and of responses that are not dropped yet, all
    /// together. Default: 128 MiB.
    pub held_bytes: u64,
    /// Wall-clock time of one request in milliseconds, from looking up the name to the last byte
    /// of the response. It does not count towards the time of the step. Default: 600,000.
    pub time_ms: u64,
    /// Wall-clock time in milliseconds until the connection stands, within that. Default: 10,000.
    pub connect_ms: u64,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            requests: 100,
            request_bytes: 16 << 20,
            response_bytes: 32 << 20,
            head_bytes: 64 << 10,
            held_bytes: 128 << 20,
            time_ms: 600_000,
            connect_ms: 10_000,
        }
    }
}

/// A limit that a request met.
#[derive(thiserror::Error, Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum HttpExceeded {
    #[error("over the http-requests limit of {limit} a step; `--limit http-requests=N` raises it")]
    Requests { limit: u32 },
    #[error("a request's body is over the http-request limit of {}; `--limit http-request={}` raises it", size(.limit), twice(.limit))]
    Request { limit: u64 },
    #[error("the response of `{url}` is over the http-response limit of {}; `--limit http-response={}` raises it", size(.limit), twice(.limit))]
    Response { url: String, limit: u64 },
    #[error("header fields are over the http-head limit of {}; `--limit http-head={}` raises it", size(.limit), twice(.limit))]
    Head { limit: u64 },
    #[error("requests and responses that are held are over the http-held limit of {}; `--limit http-held={}` raises it", size(.limit), twice(.limit))]
    Held { limit: u64 },
    #[error(
        "`{url}` has not answered within the http-time limit of {limit_ms} ms; `--limit http-time=DURATION` raises it"
    )]
    Time { url: String, limit_ms: u64 },
    #[error(
        "`{url}` has not been reached within the http-connect limit of {limit_ms} ms; `--limit http-connect=DURATION` raises it"
    )]
    Connect { url: String, limit_ms: u64 },
}

//! HTTP clients for calls.

use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;

use crate::Error;

/// How long a connection may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Where a client's calls go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// To this machine alone: past any proxy, which would be told of the object endpoint.
    pub loopback: bool,
    /// Over TLS.
    pub tls: bool,
}

/// A client that follows no redirection: the log goes to whom the user named.
pub(crate) fn client(reach: Reach) -> Result<Client, Error> {
    // The process has one provider of cryptography; where there is one already, it does.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("pugmark/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT)
        .redirect(Policy::none());
    if reach.loopback {
        builder = builder.no_proxy().http1_only().pool_max_idle_per_host(0);
    }
    if !reach.tls {
        // The system's certificates need not be there.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|source| {
        let action = "make an HTTP client".to_owned();
        Error::Io { action, source: std::io::Error::other(source) }
    })
}

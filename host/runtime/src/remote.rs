//! Handlers at an address: each step is one HTTP call to whoever serves there.
//!
//! Bodies of the log are fetched from the object endpoint, which is on this machine's loopback: a
//! handler elsewhere has the bodies that are on the lines, and no others.

use reqwest::Client;
use url::{Host, Url};

use crate::Error;
use crate::call::{CallFailure, Callee, Reach, StepHead, call, client, limit};
use crate::endpoint::Endpoint;
use crate::failure::InvokeError;
use crate::handler::{LogLine, Output};

/// A handler that serves at an `http://` or `https://` address.
pub struct RemoteHandler {
    /// For messages: without what may be secret.
    name: String,
    url: Url,
    client: Client,
    timeout_ms: u64,
}

impl RemoteHandler {
    /// A handler at `url`, each of whose steps may take `timeout_ms` milliseconds. `None` if `url`
    /// is not an address with the scheme `http` or `https`.
    ///
    /// # Errors
    /// If there can be no HTTP client, as where the system has no certificates.
    pub fn new(url: &str, timeout_ms: u64) -> Result<Option<Self>, Error> {
        let Ok(url) = Url::parse(url) else { return Ok(None) };
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Ok(None),
        };
        let client = client(Reach { loopback: is_loopback(&url), tls })?;
        Ok(Some(Self { name: shown(&url), client, url, timeout_ms }))
    }

    /// Runs one step.
    pub(crate) async fn step<S>(
        &self,
        head: StepHead<'_>,
        lines: S,
        endpoint: &Endpoint,
    ) -> Result<Vec<Output>, InvokeError>
    where
        S: futures::Stream<Item = Result<LogLine, Error>> + Send + Unpin,
    {
        let callee = Callee { name: &self.name, url: &self.url, client: &self.client };
        let called = call(&callee, head, lines, endpoint);
        tokio::time::timeout(limit(self.timeout_ms), called).await.unwrap_or_else(|_| {
            let (handler, limit_ms) = (self.name.clone(), self.timeout_ms);
            Err(CallFailure::TimedOut { handler, limit_ms }.into())
        })
    }
}

/// Whether an address is this machine's own.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// An address without user, password and query.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // An address without a host cannot have these, and has none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests;

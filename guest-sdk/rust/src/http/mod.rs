//! HTTP requests, one at a time: made while a handler decides, and only then.
//!
//! In the sandbox the runtime makes them, to hosts that the user allowed, and records each answer
//! before the handler gets it: a step that is interrupted goes on with the answers that it had, and
//! a replay asks nobody. Header fields about the connection are the runtime's own, and a secret that
//! the user added to a request is not to be seen here. As a subprocess a handler asks for itself,
//! `http` URLs only, and nothing is recorded.

#[cfg(target_family = "wasm")]
mod component;
#[cfg(target_family = "wasm")]
use component as platform;

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(not(target_family = "wasm"))]
use native as platform;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be made.
    #[error("not a request that can be made: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It was not answered. The code is WASI's, such as `connection-refused`; outside the sandbox it
    /// says the same in words of its own.
    #[error("no answer: {code}")]
    NoAnswer {
        /// Why not.
        code: String,
    },
}

/// Why a response is not what it was expected to be.
#[derive(Debug, thiserror::Error)]
#[error("the response is not the JSON that was expected")]
pub struct NotJson(#[from] serde_json::Error);

impl Request {
    /// A request with a method, such as `DELETE`.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        let (method, url) = (method.into(), url.into());
        Self { method, url, headers: Vec::new(), body: Vec::new() }
    }

    /// A request for what is there.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// A request that gives something.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// Adds a header field.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the body to JSON, and says so.
    ///
    /// # Panics
    /// If the value has no JSON form: maps with keys that are no strings have none.
    #[must_use]
    pub fn json(self, value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).unwrap_or_else(|error| panic!("no JSON: {error}"));
        self.header("content-type", "application/json").body(body)
    }

    /// Makes the request, and waits for the whole response.
    ///
    /// # Errors
    /// [`Error`]. A response of any status is none.
    pub fn send(&self) -> Result<Response, Error> {
        platform::send(self)
    }

    /// Scheme, authority, and path with query.
    fn parts(&self) -> Result<(&str, &str, &str), Error> {
        let invalid = |reason| Error::Invalid { reason };
        let (scheme, rest) = self.url.split_once("://").ok_or(invalid("its URL has no scheme"))?;
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (authority, path) = match rest.find(['/', '?']) {
            Some(end) => rest.split_at(end),
            None => (rest, "/"),
        };
        if authority.is_empty() || authority.contains('@') {
            return Err(invalid("its URL is to have a host, and nobody's name"));
        }
        if !path.starts_with('/') {
            return Err(invalid("its URL has a query and no path"));
        }
        Ok((scheme, authority, path))
    }
}

impl Response {
    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the status code is one of success.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first header field with this name, in whatever case, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body as text; what is none of it is replaced.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// [`NotJson`]
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, NotJson> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_its_parts() {
        let parts = |url: &str| {
            let request = Request::get(url);
            request.parts().map(|(a, b, c)| format!("{a} {b} {c}"))
        };
        assert_eq!(parts("https://a.example").unwrap(), "https a.example /");
        assert_eq!(parts("http://[::1]:8080/v1?x=1#y").unwrap(), "http [::1]:8080 /v1?x=1");
        for url in ["a.example", "https://", "https://u@a.example/", "https://a.example?x"] {
            assert!(matches!(parts(url), Err(Error::Invalid { .. })), "{url}");
        }
    }
}

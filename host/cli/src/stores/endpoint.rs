//! Where a store answers, and whether a connection without encryption will do.

use std::net::IpAddr;

use clap::Args;
use url::{Host, Url};

use super::is_true;
use crate::error::Error;

/// What a bucket's URL says of the connection to its store.
#[derive(Args, Clone, Default, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Where an S3, GCS or Azure compatible store answers [default: the vendor's own]
    ///
    /// Becomes part of the bucket's URL, and so of the context.
    #[arg(long, global = true, value_name = "URL", env = "PUGMARK_ENDPOINT")]
    pub endpoint: Option<String>,

    /// Talk to that endpoint without encryption; one on this machine needs no leave
    #[arg(
        long = "insecure-endpoint",
        id = "insecure_endpoint",
        global = true,
        hide_short_help = true
    )]
    pub allow_http: bool,
}

impl Connection {
    /// What a bucket's URL says.
    ///
    /// # Errors
    /// If it says something else.
    pub fn of(url: &Url) -> Result<Self, Error> {
        let mut found = Self::default();
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "endpoint" => found.endpoint = Some(value.into_owned()),
                "allow-http" => found.allow_http = is_true(&value),
                _ => {
                    return Err(Error::invalid(
                        format!("a bucket's URL cannot say `{name}`"),
                        "it may say ?endpoint=URL and &allow-http=true",
                    ));
                }
            }
        }
        Ok(found)
    }

    /// Writes this into a bucket's URL, over what it says already.
    ///
    /// # Errors
    /// If that says something else.
    pub fn write_to(&self, url: &mut Url) -> Result<(), Error> {
        let said = Self::of(url)?;
        let endpoint = self.endpoint.clone().or(said.endpoint);
        let allow_http = self.allow_http || said.allow_http;
        url.set_query(None);
        if let Some(endpoint) = endpoint {
            let endpoint = endpoint.trim_end_matches('/');
            url.query_pairs_mut().append_pair("endpoint", endpoint);
        }
        if allow_http {
            url.query_pairs_mut().append_pair("allow-http", "true");
        }
        Ok(())
    }

    /// Whether an endpoint without encryption may be talked to; `configured` is what the vendor's
    /// own variable says.
    ///
    /// # Errors
    /// If it is without encryption, and neither on this machine nor allowed.
    pub fn allows_http(&self, endpoint: Option<&str>, configured: bool) -> Result<bool, Error> {
        let Some(endpoint) = endpoint else { return Ok(configured) };
        let url = Url::parse(endpoint)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
        let url = url.ok_or_else(|| {
            Error::invalid(
                format!("`{endpoint}` is not an endpoint"),
                "write its address, such as https://storage.example.com:9000",
            )
        })?;
        if url.scheme() == "https" {
            return Ok(configured || self.allow_http);
        }
        if configured || self.allow_http || is_loopback(&url) {
            return Ok(true);
        }
        Err(Error::invalid(
            format!(
                "the endpoint `{endpoint}` has no encryption: credentials and data could be read on the way"
            ),
            "use https, or say --insecure-endpoint",
        ))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(endpoint: &str) -> Connection {
        Connection { endpoint: Some(endpoint.into()), allow_http: false }
    }

    #[test]
    fn a_url_carries_the_connection() {
        let mut url = Url::parse("s3://bucket/folder").unwrap();
        with("http://127.0.0.1:8333/").write_to(&mut url).unwrap();
        assert_eq!(url.as_str(), "s3://bucket/folder?endpoint=http%3A%2F%2F127.0.0.1%3A8333");
        assert_eq!(Connection::of(&url).unwrap(), with("http://127.0.0.1:8333"));
        Connection { endpoint: None, allow_http: true }.write_to(&mut url).unwrap();
        let said = Connection::of(&url).unwrap();
        assert_eq!(said, Connection { allow_http: true, ..with("http://127.0.0.1:8333") });
        with("https://other").write_to(&mut url).unwrap();
        assert_eq!(Connection::of(&url).unwrap().endpoint.as_deref(), Some("https://other"));
        assert!(Connection::of(&Url::parse("s3://b?region=x").unwrap()).is_err());
    }

    #[test]
    fn only_this_machine_is_talked_to_without_encryption() {
        let allows = |endpoint: &str| with(endpoint).allows_http(Some(endpoint), false);
        for here in
            ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://127.9.9.9"]
        {
            assert!(allows(here).unwrap(), "{here}");
        }
        for elsewhere in ["http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.nip"]
        {
            assert!(allows(elsewhere).is_err(), "{elsewhere}");
            assert!(with(elsewhere).allows_http(Some(elsewhere), true).unwrap());
        }
        assert!(!allows("https://example.com").unwrap());
        for wrong in ["", "example.com", "ftp://x"] {
            assert!(allows(wrong).is_err(), "{wrong}");
        }
    }
}

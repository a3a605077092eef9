//! Which places may be asked.
//!
//! A place is a host, by its exact name or address, and a port. What is checked is what is connected
//! to: a name is looked up once, and only those of its addresses count that are allowed for it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::address::{Kind, kind_of};
use crate::sandbox::{Request, Scheme, authority};

/// What the places are that may be asked.
pub(super) struct Rules {
    places: Vec<Place>,
    private_network: bool,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    host: String,
    /// That of the scheme where there is none.
    port: Option<u16>,
}

/// Why a place cannot be one, or an environment variable no secret.
#[derive(thiserror::Error, Debug, PartialEq, Eq)]
#[error("`{text}` is not a place that can be asked: {reason}")]
pub struct RuleError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Where a request that is allowed goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) scheme: Scheme,
    rule: Rule,
}

/// What may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// This very address.
    Address(IpAddr),
    /// This machine.
    Localhost,
    /// What the name leads to.
    Name { private_network: bool },
}

impl Place {
    /// Parses `HOST[:PORT]`.
    pub(super) fn parse(text: &str) -> Result<Self, RuleError> {
        let invalid = |reason| RuleError { text: text.to_owned(), reason };
        if text.contains("//") {
            return Err(invalid("give host and port alone, such as api.example.com:8443"));
        }
        // An address of IPv6 is at home in brackets; alone, it is as clear.
        let (host, port) = match text.parse::<Ipv6Addr>() {
            Ok(address) => (address.to_string(), None),
            Err(_) => authority(text).ok_or_else(|| {
                invalid("it is neither HOST nor HOST:PORT, by exact name or address")
            })?,
        };
        if host.parse().is_ok_and(|address| kind_of(address) == Kind::Special) {
            return Err(invalid("no single machine has this address"));
        }
        Ok(Self { host, port })
    }

    /// Whether a request to `host` and `port` is one to this place.
    pub(super) fn is(&self, host: &str, port: u16, scheme: Scheme) -> bool {
        self.host == host && self.port.unwrap_or(scheme.default_port()) == port
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.host.contains(':'), self.port) {
            (true, Some(port)) => write!(f, "[{}]:{port}", self.host),
            (true, None) => write!(f, "[{}]", self.host),
            (false, Some(port)) => write!(f, "{}:{port}", self.host),
            (false, None) => f.write_str(&self.host),
        }
    }
}

impl Rules {
    /// Parses places.
    pub(super) fn parse(places: &[String], private_network: bool) -> Result<Self, RuleError> {
        let places = places.iter().map(|text| Place::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self { places, private_network })
    }

    /// Whether a place is among them.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.places.contains(place)
    }

    /// Where a request goes; an error with the way out if it may not.
    pub(super) fn destination(&self, request: &Request) -> Result<Destination, String> {
        let scheme = request.scheme;
        let Some((host, port)) = authority(&request.authority) else {
            return Err(format!("`{}` is neither HOST nor HOST:PORT", request.authority));
        };
        let port = port.unwrap_or(scheme.default_port());
        if !self.places.iter().any(|place| place.is(&host, port, scheme)) {
            return Err(format!("`--allow-http {}` allows it", request.authority));
        }
        let rule = match host.parse() {
            Ok(address) => Rule::Address(address),
            Err(_) if host == "localhost" => Rule::Localhost,
            Err(_) => Rule::Name { private_network: self.private_network },
        };
        Ok(Destination { host, port, scheme, rule })
    }
}

impl Destination {
    /// The addresses that need no looking up.
    pub(super) fn known_addresses(&self) -> Option<Vec<IpAddr>> {
        match self.rule {
            Rule::Address(address) => Some(vec![address]),
            Rule::Localhost => Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
            Rule::Name { .. } => None,
        }
    }

    /// Those of `addresses` that may be connected to; an error with the way out if none may.
    pub(super) fn allowed(&self, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, String> {
        let allowed = |address: &&IpAddr| match (self.rule, kind_of(**address)) {
            (_, Kind::Special) => false,
            (Rule::Address(own), _) => own == **address,
            (Rule::Localhost, kind) => kind == Kind::Loopback,
            (Rule::Name { .. }, Kind::Public) => true,
            (Rule::Name { private_network }, Kind::Private) => private_network,
            (Rule::Name { .. }, _) => false,
        };
        let reachable: Vec<IpAddr> = addresses.iter().filter(allowed).copied().collect();
        if let (true, Some(first)) = (reachable.is_empty(), addresses.first()) {
            let kind = kind_of(*first);
            let hint = match kind {
                Kind::Private => "`--allow-private-network` allows that",
                _ => "give the address itself to `--allow-http`, and have the handler ask it",
            };
            return Err(format!("it leads to {first}, a {} address; {hint}", kind.name()));
        }
        // Without TLS, anybody on the way could read and answer.
        let is_safe =
            |address: &IpAddr| self.scheme == Scheme::Https || kind_of(*address) == Kind::Loopback;
        let safe: Vec<IpAddr> = reachable.into_iter().filter(is_safe).collect();
        if safe.is_empty() && !addresses.is_empty() {
            return Err("without TLS, only this machine is asked; use https".to_owned());
        }
        Ok(safe)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn request(url: &str) -> Request {
        let (scheme, rest) = url.split_once("://").unwrap();
        let scheme = if scheme == "http" { Scheme::Http } else { Scheme::Https };
        Request {
            method: "GET".into(),
            scheme,
            authority: rest.to_owned(),
            path: "/".into(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    fn rules(places: &[&str], private_network: bool) -> Rules {
        let places: Vec<String> = places.iter().map(|&place| place.to_owned()).collect();
        Rules::parse(&places, private_network).unwrap()
    }

    #[test]
    fn a_place_is_exact() {
        let rules = rules(&["api.example.com", "Other.example:8443", "::1", "[::1]:8080"], false);
        for url in [
            "https://api.example.com",
            "https://API.example.com:443",
            "https://other.example:8443",
            "http://[::1]",
            "http://[::1]:8080",
            "https://[0::1]:8080",
            "http://api.example.com",
        ] {
            assert!(rules.destination(&request(url)).is_ok(), "{url}");
        }
        for url in [
            "https://example.com",
            "https://x.api.example.com",
            "https://api.example.com.evil.net",
            "https://api.example.com:8443",
            "https://other.example",
            "http://[::1]:81",
            "https://127.0.0.1",
            "https://u@api.example.com",
            "https://api.example.com.",
        ] {
            assert!(rules.destination(&request(url)).is_err(), "{url}");
        }
        let hint = rules.destination(&request("https://evil.example:1")).unwrap_err();
        assert_eq!(hint, "`--allow-http evil.example:1` allows it");
    }

    #[test]
    fn what_cannot_be_a_place_is_refused() {
        for text in [
            "",
            "https://x",
            "x/y",
            "*.example.com",
            "x:0",
            "0.0.0.0",
            "[::]:1",
            "224.0.0.1",
            "a b",
        ] {
            assert_eq!(Place::parse(text).unwrap_err().text, text);
        }
        for text in ["localhost", "127.0.0.1:8080", "10.0.0.1", "[fd00::1]:443", "example.com:1"] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
    }

    fn reached(
        places: &[&str],
        private: bool,
        url: &str,
        addresses: &[&str],
    ) -> Result<Vec<String>, String> {
        let destination = rules(places, private).destination(&request(url)).unwrap();
        let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
        let allowed = destination.allowed(&addresses)?;
        Ok(allowed.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_name_leads_to_the_internet_alone() {
        let public = ["93.184.216.34", "2606:4700::1"];
        assert_eq!(reached(&["a.example"], false, "https://a.example", &public).unwrap(), public);
        for bad in [
            "127.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "224.0.0.1",
        ] {
            assert!(reached(&["a.example"], false, "https://a.example", &[bad]).is_err(), "{bad}");
            let mixed = reached(&["a.example"], false, "https://a.example", &[bad, public[0]]);
            assert_eq!(mixed.unwrap(), [public[0]]);
        }
        let private =
            |allowed| reached(&["a.example"], allowed, "https://a.example", &["10.0.0.1"]);
        let hint = private(false).unwrap_err();
        assert_eq!(
            hint,
            "it leads to 10.0.0.1, a private address; `--allow-private-network` allows that"
        );
        assert_eq!(private(true).unwrap(), ["10.0.0.1"]);
        for never in ["127.0.0.1", "169.254.169.254", "fe80::1"] {
            assert!(
                reached(&["a.example"], true, "https://a.example", &[never]).is_err(),
                "{never}"
            );
        }
    }

    #[test]
    fn an_address_is_allowed_by_itself() {
        for address in ["10.0.0.1", "169.254.169.254", "127.0.0.1"] {
            let url = format!("https://{address}");
            assert_eq!(reached(&[address], false, &url, &[address]).unwrap(), [address]);
        }
        let localhost = reached(&["localhost"], false, "http://localhost", &["127.0.0.1", "::1"]);
        assert_eq!(localhost.unwrap(), ["127.0.0.1", "::1"]);
    }

    #[test]
    fn without_tls_only_this_machine_is_asked() {
        let reason = "without TLS, only this machine is asked; use https";
        for (place, address) in [("a.example", "93.184.216.34"), ("10.0.0.1", "10.0.0.1")] {
            let url = format!("http://{place}");
            assert_eq!(reached(&[place], true, &url, &[address]).unwrap_err(), reason);
        }
    }
}

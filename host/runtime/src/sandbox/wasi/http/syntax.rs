//! What may stand in a request: nothing that another reader could take for something else.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::header::{HeaderName, HeaderValue};

/// The longest authority, in bytes: a name of 253 and a port.
const AUTHORITY_LEN: usize = 260;

/// The longest path with query, in bytes.
const PATH_LEN: usize = 64 * 1024;

/// The longest method, in bytes.
const METHOD_LEN: usize = 32;

/// Fields that are about the connection, which is the host's.
const FORBIDDEN: [&str; 12] = [
    "connection",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a guest may not set the field of this name.
pub(super) fn is_forbidden(name: &str) -> bool {
    FORBIDDEN.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden))
}

/// Whether a response's field is about the connection, and so not the guest's affair.
pub(crate) fn is_of_connection(name: &str) -> bool {
    is_forbidden(name)
}

pub(super) fn is_name(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok()
}

pub(super) fn is_value(value: &[u8]) -> bool {
    HeaderValue::from_bytes(value).is_ok()
}

/// Whether this is a method that a request can have: a token, and no tunnel.
pub(super) fn is_method(method: &str) -> bool {
    method.len() <= METHOD_LEN
        && HeaderName::from_bytes(method.as_bytes()).is_ok()
        && !method.eq_ignore_ascii_case("connect")
}

/// Whether this is a path with query in the form that requests for a server have: never a whole
/// address, which a server might prefer to `Host`.
pub(super) fn is_path(path: &str) -> bool {
    path.len() <= PATH_LEN
        && path.starts_with('/')
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

/// Host and port of an authority, the host in lower case and an address of IPv6 without brackets.
/// `None` if it is not just a host, by name or address, with an optional port.
#[must_use]
pub fn authority(text: &str) -> Option<(String, Option<u16>)> {
    if text.len() > AUTHORITY_LEN {
        return None;
    }
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        let address: Ipv6Addr = host.parse().ok()?;
        let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
        (address.to_string(), port)
    } else {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        (host_name(host)?, port)
    };
    let port = match port {
        None => None,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port > 0)?)
        }
        Some(_) => return None,
    };
    Some((host, port))
}

/// A name in lower case, or an address of IPv4. What only some readers take for an address is
/// neither.
fn host_name(host: &str) -> Option<String> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let host = host.to_ascii_lowercase();
    let last = host.rsplit('.').next()?;
    let looks_like_a_number = last.starts_with(|c: char| c.is_ascii_digit());
    if !host.split('.').all(label) || (looks_like_a_number && host.parse::<Ipv4Addr>().is_err()) {
        return None;
    }
    Some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_host_and_port_alone() {
        let name = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(authority("Example.com"), name("example.com", None));
        assert_eq!(authority("a-b.c_d:8080"), name("a-b.c_d", Some(8080)));
        assert_eq!(authority("127.0.0.1:1"), name("127.0.0.1", Some(1)));
        assert_eq!(authority("[0:0::1]:443"), name("::1", Some(443)));
        assert_eq!(authority("[::ffff:10.0.0.1]"), name("::ffff:10.0.0.1", None));
        for text in [
            "",
            "a@b",
            "u:p@b",
            "a/b",
            "a b",
            "a:",
            "a:0",
            "a:65536",
            "a:+1",
            "::1",
            "[::1",
            "[a]",
            "[::1]x",
            "a..b",
            ".a",
            "a.",
            "1",
            "0x7f.1",
            "127.1",
            "0177.0.0.1",
            "a%00",
            "é",
            "a\n",
            "[fe80::1%eth0]",
            "a\\b",
            "a?b",
            "a#b",
        ] {
            assert_eq!(authority(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_path_is_never_a_whole_address() {
        for path in ["/", "/a?b=c&d", "//b.example/", "/%0d%0a"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["", "http://b.example/", "*", "/a b", "/a\r\nHost: b", "/a#b", "/é", "?a"] {
            assert!(!is_path(path), "{path:?}");
        }
    }

    #[test]
    fn a_method_opens_no_tunnel() {
        for method in ["GET", "PROPFIND", "get"] {
            assert!(is_method(method));
        }
        for method in ["", "CONNECT", "connect", "G T", "GET\r\n", "é"] {
            assert!(!is_method(method), "{method:?}");
        }
    }
}

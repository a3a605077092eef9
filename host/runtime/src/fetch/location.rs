//! Addresses taken apart, so that nothing is left to be interpreted when they are compared.

use percent_encoding::percent_decode_str;

/// Where something lies: `scheme://authority/segment/segment`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Location {
    scheme: String,
    authority: String,
    /// Decoded; none is empty, `.` or `..`, or has a slash in it.
    segments: Vec<String>,
}

impl Location {
    /// The address of something that can be fetched, or what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let location = Self::take_apart(text, false)?;
        if location.segments.is_empty() {
            return Err("it names no file or object");
        }
        Ok(location)
    }

    /// The address of something, or of all that lies below it. A slash may end it.
    pub(super) fn parse_prefix(text: &str) -> Result<Self, &'static str> {
        Self::take_apart(text, true)
    }

    fn take_apart(text: &str, slash_may_end_it: bool) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("it is not of the form scheme://…")?;
        let of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if scheme.is_empty() || !scheme.chars().all(of_scheme) {
            return Err("it is not of the form scheme://…");
        }
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it has characters that must be percent-encoded");
        }
        if rest.contains(['?', '#']) {
            return Err("it has a query or a fragment");
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains(['@', '%', '\\']) {
            return Err("it has a user name or an escape in its host");
        }
        let scheme = scheme.to_ascii_lowercase();
        let authority = authority.to_ascii_lowercase();
        if scheme == "file" && !matches!(authority.as_str(), "" | "localhost") {
            return Err("a file's address names no host");
        }
        let authority = if scheme == "file" { String::new() } else { authority };
        let path = if slash_may_end_it { path.strip_suffix('/').unwrap_or(path) } else { path };
        let segments = if path.is_empty() {
            Vec::new()
        } else {
            path.split('/').map(segment).collect::<Result<_, _>>()?
        };
        Ok(Self { scheme, authority, segments })
    }

    /// What follows `prefix` in this address, if it is the same or lies below.
    pub(super) fn under(&self, prefix: &Self) -> Option<&[String]> {
        let same_place = self.scheme == prefix.scheme && self.authority == prefix.authority;
        let rest = self.segments.strip_prefix(prefix.segments.as_slice())?;
        same_place.then_some(rest)
    }

    /// Whether it is a local file.
    pub(super) fn is_file(&self) -> bool {
        self.scheme == "file"
    }

    /// Its parts below the root.
    pub(super) fn segments(&self) -> &[String] {
        &self.segments
    }
}

fn segment(text: &str) -> Result<String, &'static str> {
    // A `%` that begins no escape would be left as it is, and read by others in other ways.
    let mut escapes = text.split('%').skip(1);
    let is_escape =
        |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !escapes.all(is_escape) {
        return Err("it has a `%` that begins no escape");
    }
    let decoded = percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| "it is not UTF-8 once it is decoded")?
        .into_owned();
    match decoded.as_str() {
        "" => Err("a part of its path is empty"),
        "." | ".." => Err("it has `.` or `..` in its path"),
        text if text.contains(['/', '\\']) => Err("it has an escaped slash or a backslash"),
        text if text.chars().any(char::is_control) => Err("it has control characters"),
        _ => Ok(decoded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(address: &str, prefix: &str) -> Option<String> {
        let (address, prefix) =
            (Location::parse(address).unwrap(), Location::parse_prefix(prefix).unwrap());
        address.under(&prefix).map(|rest| rest.join("/"))
    }

    #[test]
    fn compares_part_by_part() {
        let rest = |rest: &str| Some(rest.to_owned());
        assert_eq!(under("s3://b/in/a.json", "s3://b/in"), rest("a.json"));
        assert_eq!(under("s3://b/in/a.json", "S3://B/in/"), rest("a.json"));
        assert_eq!(under("s3://b/in/a.json", "s3://b"), rest("in/a.json"));
        assert_eq!(under("s3://b/in", "s3://b/in"), rest(""));
        assert_eq!(under("s3://b/i%6E/%61", "s3://b/in"), rest("a"));
        assert_eq!(under("file:///d/x", "file://localhost/d/"), rest("x"));
        assert_eq!(under("https://h:8080/d/x", "https://h:8080/"), rest("d/x"));
        for (address, prefix) in [
            ("s3://b/inner/a", "s3://b/in"),
            ("s3://b/IN/a", "s3://b/in"),
            ("s3://b2/in/a", "s3://b/in"),
            ("gs://b/in/a", "s3://b/in"),
            ("s3://b/a", "s3://b/a/b"),
            ("https://h:8080/a", "https://h/"),
        ] {
            assert_eq!(under(address, prefix), None, "{address} {prefix}");
        }
    }

    #[test]
    fn refuses_what_could_be_read_in_two_ways() {
        for address in [
            "",
            "a/b",
            "/etc/passwd",
            "file:/etc/passwd",
            "://b/a",
            "s3://b",
            "s3://b/",
            "s3://b/in/",
            "s3://b//in",
            "s3://b/in/../x",
            "s3://b/in/%2e%2E/x",
            "s3://b/in/.%2e/x",
            "s3://b/./x",
            "s3://b/in%2f..%2fx",
            "s3://b/in\\..\\x",
            "s3://b/in%5c..%5cx",
            "s3://b/x%00",
            "s3://b/x%",
            "s3://b/x%zz",
            "s3://b/%ff",
            "s3://b/ä",
            "s3://b/a b",
            "s3://b/a?versionId=1",
            "s3://b/a#b",
            "https://user:secret@h/a",
            "https://h%2fa/b",
            "file://elsewhere/a",
        ] {
            assert!(Location::parse(address).is_err(), "{address}");
        }
        // What stays literal after one decoding is literal.
        let location = Location::parse("s3://b/%252e%252e").unwrap();
        assert_eq!(location.segments(), ["%2e%2e"]);
    }
}

//! Secrets that are sent to one place, and shown nowhere else.
//!
//! A secret is added to a request on its way out, over TLS or within this machine. A response that
//! has it in it, plainly or in one of the usual disguises, is refused: else it would be in the log.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, HeaderName, HeaderValue};
use memchr::memmem;

use super::SecretSource;
use super::rules::{Destination, Place, RuleError, Rules};
use crate::sandbox::Response;

/// A secret that is shorter cannot be told from other text.
const MIN_BYTES: usize = 8;

/// A secret, and where it goes.
pub(super) struct Secret {
    place: Place,
    /// What the user calls it.
    variable: String,
    header: HeaderName,
    value: HeaderValue,
    /// How a response may say it.
    disguises: Vec<Vec<u8>>,
}

/// Why something cannot be a secret. What it says is never part of it.
#[derive(thiserror::Error, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SecretError {
    #[error("`{spec}` is not a secret: write HOST=VARIABLE, or HOST=VARIABLE:HEADER")]
    Spec { spec: String },
    #[error(transparent)]
    Place(#[from] RuleError),
    #[error("a secret is for `{place}`, which may not be asked; `--allow-http {place}` allows it")]
    NotAllowed { place: String },
    #[error("the environment variable `{variable}` is not set")]
    Unset { variable: String },
    #[error(
        "the environment variable `{variable}` cannot be sent: a secret is 8 or more characters \
         that a header field can have"
    )]
    Unusable { variable: String },
}

impl Secret {
    /// Parses a secret and looks its value up.
    pub(super) fn parse(source: &SecretSource<'_>, rules: &Rules) -> Result<Self, SecretError> {
        let invalid = || SecretError::Spec { spec: source.spec.to_owned() };
        let (place, rest) = source.spec.split_once('=').ok_or_else(invalid)?;
        let (variable, header) = match rest.split_once(':') {
            Some((variable, header)) => (variable, Some(header)),
            None => (rest, None),
        };
        if variable.is_empty() {
            return Err(invalid());
        }
        let place = Place::parse(place)?;
        if !rules.has(&place) {
            return Err(SecretError::NotAllowed { place: place.to_string() });
        }
        let header = match header {
            Some(name) => HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?,
            None => AUTHORIZATION,
        };
        if crate::sandbox::is_of_connection(header.as_str()) {
            return Err(invalid());
        }
        let variable = variable.to_owned();
        let Some(secret) = (source.lookup)(&variable) else {
            return Err(SecretError::Unset { variable });
        };
        let secret = secret.trim();
        let is_bare = rest.contains(':');
        let text = if is_bare { secret.to_owned() } else { format!("Bearer {secret}") };
        let value = HeaderValue::from_str(&text).ok().filter(|_| secret.len() >= MIN_BYTES);
        let Some(mut value) = value else { return Err(SecretError::Unusable { variable }) };
        value.set_sensitive(true);
        let disguises = disguises(secret.as_bytes());
        Ok(Self { place, variable, header, value, disguises })
    }

    /// Whether requests that go there carry it.
    pub(super) fn is_for(&self, to: &Destination) -> bool {
        self.place.is(&to.host, to.port, to.scheme)
    }

    /// Adds it to the fields of a request, in place of what the guest says there. What is answered
    /// has to be readable, so that it can be looked through.
    pub(super) fn add(&self, headers: &mut hyper::HeaderMap) {
        headers.insert(self.header.clone(), self.value.clone());
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }

    /// Why a response to a request that carried it is refused; `None` if it is not.
    pub(super) fn refuses(&self, response: &Response) -> Option<String> {
        let is_encoded = |(name, value): &(String, bytes::Bytes)| {
            name == CONTENT_ENCODING.as_str() && !value.eq_ignore_ascii_case(b"identity")
        };
        if response.headers.iter().any(is_encoded) {
            let reason = "is encoded, so that it cannot be looked through for the secret";
            return Some(format!("its response {reason} `{}`", self.variable));
        }
        let fields = response.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value]);
        let mut texts = fields.chain([&response.body[..]]);
        texts
            .any(|text| self.is_in(text))
            .then(|| format!("its response has the secret `{}` in it", self.variable))
    }
}

impl Secret {
    /// Whether a text has it in it, whatever the case of letters, percent-encoded or escaped.
    fn is_in(&self, text: &[u8]) -> bool {
        let text = text.to_ascii_lowercase();
        let is_in =
            |text: &[u8]| self.disguises.iter().any(|said| memmem::find(text, said).is_some());
        let decoded = || {
            let decoded: Vec<u8> = percent_encoding::percent_decode(&text).collect();
            decoded.to_ascii_lowercase()
        };
        let bare = || text.iter().copied().filter(|byte| *byte != b'\\').collect::<Vec<u8>>();
        is_in(&text)
            || (text.contains(&b'%') && is_in(&decoded()))
            || (text.contains(&b'\\') && is_in(&bare()))
    }
}

/// A text itself, as hexadecimal digits, and in base64 wherever that begins; all in small letters.
fn disguises(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![secret.to_vec(), hex::encode(secret).into_bytes()];
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        for before in 0..3 {
            let mut shifted = vec![0; before];
            shifted.extend_from_slice(secret);
            let encoded = engine.encode(&shifted);
            // What the bytes around it have a share in may be any character.
            let from = [0, 2, 3][before];
            let until = shifted.len() * 8 / 6;
            all.push(encoded.as_bytes()[from..until].to_vec());
        }
    }
    for said in &mut all {
        said.make_ascii_lowercase();
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use bytes::Bytes;

    use super::*;

    const VALUE: &str = "sk-a/b+c?d&e=f~0123";

    fn parse(spec: &str) -> Result<Secret, SecretError> {
        let rules = Rules::parse(&["a.example".to_owned(), "[::1]:80".to_owned()], false).unwrap();
        let lookup = |name: &str| match name {
            "KEY" => Some(VALUE.to_owned()),
            "SHORT" => Some("1234567".to_owned()),
            "LINES" => Some("12345678\r\nX: y".to_owned()),
            _ => None,
        };
        Secret::parse(&SecretSource { spec, lookup: &lookup }, &rules)
    }

    fn response(headers: &[(&str, &str)], body: &[u8]) -> Response {
        let field = |(name, value): &(&str, &str)| {
            ((*name).to_owned(), Bytes::copy_from_slice(value.as_bytes()))
        };
        let headers = headers.iter().map(field).collect();
        Response { status: 200, headers, body: Bytes::copy_from_slice(body) }
    }

    #[test]
    fn goes_into_one_field() {
        let mut headers = hyper::HeaderMap::new();
        headers.insert("authorization", "mine".parse().unwrap());
        headers.insert("accept-encoding", "gzip".parse().unwrap());
        parse("a.example=KEY").unwrap().add(&mut headers);
        assert_eq!(headers["authorization"], format!("Bearer {VALUE}"));
        assert_eq!(headers["accept-encoding"], "identity");
        parse("[::1]:80=KEY:x-api-key").unwrap().add(&mut headers);
        assert_eq!(headers["x-api-key"], VALUE);
    }

    #[test]
    fn says_what_is_wrong_and_never_what_it_is() {
        for spec in
            ["a.example", "a.example=", "a.example=KEY:", "a.example=KEY:a b", "a.example=KEY:host"]
        {
            assert!(matches!(parse(spec), Err(SecretError::Spec { .. })), "{spec}");
        }
        assert!(matches!(parse("b.example=KEY"), Err(SecretError::NotAllowed { .. })));
        assert!(matches!(parse("a.example:8443=KEY"), Err(SecretError::NotAllowed { .. })));
        assert!(matches!(parse("a.example=NONE"), Err(SecretError::Unset { .. })));
        for spec in ["a.example=SHORT", "a.example=LINES"] {
            let error = parse(spec).err().unwrap();
            assert!(matches!(error, SecretError::Unusable { .. }));
            assert!(!error.to_string().contains("1234567"));
        }
    }

    #[test]
    fn is_found_in_what_comes_back() {
        let secret = parse("a.example=KEY").unwrap();
        let percent: Vec<_> = VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let percent = percent.concat();
        let escaped = "sk%2da%2Fb%2Bc%3Fd%26e%3Df%7E0123";
        let slashes = VALUE.replace('/', "\\/");
        let mut echoes = vec![VALUE.to_owned(), VALUE.to_uppercase(), hex::encode(VALUE)];
        echoes.extend([percent, escaped.to_owned(), slashes]);
        for before in ["", "x", "xy", "Bearer "] {
            for after in ["", "z", "zz"] {
                echoes.push(STANDARD.encode(format!("{before}{VALUE}{after}")));
                echoes.push(URL_SAFE.encode(format!("{before}{VALUE}{after}")));
            }
        }
        for echo in echoes {
            let body = format!("{{\"you said\":\"{echo}\"}}");
            assert!(secret.refuses(&response(&[], body.as_bytes())).is_some(), "{echo}");
            assert!(secret.refuses(&response(&[("x-echo", &echo)], b"")).is_some(), "{echo}");
        }
        assert_eq!(secret.refuses(&response(&[("a", "b")], b"sk-a/b+c")), None);
        assert!(secret.refuses(&response(&[("content-encoding", "gzip")], b"")).is_some());
    }
}

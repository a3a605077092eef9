//! Events as a handler sees them: what describes them at once, the body when it is asked for.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Body, Error, platform};

/// What kind of event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Something was appended: from outside, or by a handler.
    Push,
    /// A sleep ended.
    Wake,
    /// The session has no other event yet.
    Start,
    /// The session is a fork, and its own history begins here. Sent on request only.
    Fork,
    /// A kind from a later version: to be skipped.
    Other,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "push" => Self::Push,
            "wake" => Self::Wake,
            "start" => Self::Start,
            "fork" => Self::Fork,
            _ => Self::Other,
        }
    }
}

/// One event of the log.
#[derive(Clone, Debug)]
pub struct Event {
    pub(crate) position: u64,
    pub(crate) kind: Kind,
    pub(crate) hash: String,
    pub(crate) size: u64,
    pub(crate) name: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) schema_url: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    /// Where a body that did not come along is read: a hash in the sandbox, else a URL.
    pub(crate) location: String,
    pub(crate) body: OnceCell<Vec<u8>>,
}

impl Event {
    /// Where the event stands in the log, from 0. Ascending, but not without gaps: control records
    /// such as pauses are not sent.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What kind of event it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The body's address: `sha256:` and 64 hexadecimal digits. Empty for an event that a test made.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The body's length in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The event's name. Several may share one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The body's media type.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// How the body is encoded, `gzip` or `zstd` for example; `None` if it is not.
    #[must_use]
    pub fn content_encoding(&self) -> Option<&str> {
        self.content_encoding.as_deref()
    }

    /// Where the body's schema is described.
    #[must_use]
    pub fn schema_url(&self) -> Option<&str> {
        self.schema_url.as_deref()
    }

    /// Free names and values.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The whole body as it was stored, read at the first call and kept. The step ends if it cannot
    /// be read.
    pub fn bytes(&self) -> &[u8] {
        self.body.get_or_init(|| {
            let len = usize::try_from(self.size).unwrap_or(usize::MAX);
            platform::read_object(&self.location, 0, len)
        })
    }

    /// The whole body as text.
    ///
    /// # Errors
    /// [`Error::Encoded`] and [`Error::Text`].
    pub fn text(&self) -> Result<&str, Error> {
        self.refuse_encoded()?;
        std::str::from_utf8(self.bytes())
            .map_err(|source| Error::Text { position: self.position, source })
    }

    /// The whole body as JSON of the shape `T`.
    ///
    /// # Errors
    /// [`Error::Encoded`] and [`Error::Json`].
    pub fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        self.refuse_encoded()?;
        serde_json::from_slice(self.bytes())
            .map_err(|source| Error::Json { position: self.position, source })
    }

    /// Up to `len` bytes of the body from `offset`: fewer at its end, none past it. Nothing is
    /// kept. The step ends if they cannot be read.
    #[must_use]
    pub fn read_at(&self, offset: u64, len: usize) -> Vec<u8> {
        let left = self.size.saturating_sub(offset);
        let len = usize::try_from(left).map_or(len, |left| left.min(len));
        if len == 0 {
            return Vec::new();
        }
        match self.body.get() {
            Some(body) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(body.len());
                body[start..start.saturating_add(len).min(body.len())].to_vec()
            }
            None => platform::read_object(&self.location, offset, len),
        }
    }

    /// The body from its start, read piece by piece: for those too large to be held.
    #[must_use]
    pub fn body(&self) -> Body<'_> {
        Body::new(self)
    }

    fn refuse_encoded(&self) -> Result<(), Error> {
        match self.content_encoding.as_deref() {
            None | Some("identity") => Ok(()),
            Some(encoding) => {
                Err(Error::Encoded { position: self.position, encoding: encoding.to_owned() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Output, testing};

    #[test]
    fn reads_pieces() {
        let event = testing::event(7, Kind::Push, &Output::text("hello"));
        assert_eq!(event.position(), 7);
        assert_eq!(event.text().unwrap(), "hello");
        assert_eq!(event.read_at(1, 3), b"ell");
        assert_eq!(event.read_at(3, usize::MAX), b"lo");
        assert_eq!(event.read_at(5, 1), b"");
        assert_eq!(event.read_at(u64::MAX, 1), b"");
    }

    #[test]
    fn says_what_is_wrong_with_a_body() {
        let event = testing::event(2, Kind::Push, &Output::bytes([0xff]));
        assert!(matches!(event.text(), Err(Error::Text { position: 2, .. })));
        assert!(matches!(event.json::<u8>(), Err(Error::Json { position: 2, .. })));
        let event = testing::event(3, Kind::Push, &Output::text("1").content_encoding("gzip"));
        assert_eq!(
            event.json::<u8>().unwrap_err().to_string(),
            "the body of event 3 is encoded as gzip"
        );
        assert_eq!(event.bytes(), b"1");
    }

    #[test]
    fn an_unknown_kind_is_other() {
        assert_eq!(Kind::named("wake"), Kind::Wake);
        assert_eq!(Kind::named("dream"), Kind::Other);
    }
}

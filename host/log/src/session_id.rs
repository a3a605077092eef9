//! Session ids: `UUIDv7` (RFC 9562), which carry their own creation time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;
use crate::timestamp::Timestamp;

/// The name of a session, 128 bits: 48 of creation time in milliseconds, then version, variant and
/// 74 bits that make it unique. Written as a hyphenated lower-case UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u128);

impl SessionId {
    /// A new id from the time and ten bytes: random ones for a session that a person starts, a
    /// digest's first ones where the id must follow from something else.
    #[must_use]
    pub fn new(created: Timestamp, unique: [u8; 10]) -> Self {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&created.as_millis().to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&unique);
        bytes[6] = 0x70 | (bytes[6] & 0x0f);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        Self(u128::from_be_bytes(bytes))
    }

    /// When the session was created.
    #[must_use]
    pub fn created(&self) -> Timestamp {
        Timestamp::from_millis((self.0 >> 80) as u64)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || Error::InvalidSessionId { text: text.chars().take(80).collect() };
        let shape = text.len() == 36
            && text.bytes().enumerate().all(|(i, b)| match i {
                8 | 13 | 18 | 23 => b == b'-',
                _ => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
            });
        if !shape {
            return Err(invalid());
        }
        let id = Self(u128::from_str_radix(&text.replace('-', ""), 16).map_err(|_| invalid())?);
        let (version, variant) = ((id.0 >> 76) & 0xf, (id.0 >> 62) & 0x3);
        if version == 7 && variant == 2 { Ok(id) } else { Err(invalid()) }
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_its_creation_time() {
        let created = Timestamp::from_millis(0x0192_3456_789a);
        let id = SessionId::new(created, [0xff; 10]);
        assert_eq!(id.to_string(), "01923456-789a-7fff-bfff-ffffffffffff");
        assert_eq!(id.created(), created);
        assert_eq!(id.to_string().parse::<SessionId>().unwrap(), id);
    }

    #[test]
    fn refuses_what_is_no_uuid_v7() {
        for text in [
            "",
            "01923456-789a-4fff-bfff-ffffffffffff",
            "01923456-789a-7fff-0fff-ffffffffffff",
            "01923456789a7fffbfffffffffffffff",
        ] {
            assert!(text.parse::<SessionId>().is_err(), "{text}");
        }
    }
}

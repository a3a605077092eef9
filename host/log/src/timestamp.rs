//! Points in time, in whole milliseconds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::error::Error;

/// Milliseconds since 1970-01-01T00:00:00Z. Written in RFC 3339, UTC, with three decimals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(u64);

/// 9999-12-31T23:59:59.999Z: the last one that RFC 3339 can write.
const MAX_MS: u64 = 253_402_300_799_999;

impl Timestamp {
    /// From milliseconds since the epoch; what lies past the year 9999 becomes its last millisecond.
    #[must_use]
    pub fn from_millis(ms: u64) -> Self {
        Self(ms.min(MAX_MS))
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        self.0
    }

    /// This point moved into the future by `ms` milliseconds.
    #[must_use]
    pub fn plus_millis(self, ms: u64) -> Self {
        Self::from_millis(self.0.saturating_add(ms))
    }

    /// Year, month, day, hour, minute, second and millisecond, in UTC.
    fn civil(self) -> OffsetDateTime {
        let nanos = i128::from(self.0) * 1_000_000;
        OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// Year, month, day and hour, in UTC: the partition of a session that was created then.
    pub(crate) fn partition(self) -> (i32, u8, u8, u8) {
        let civil = self.civil();
        (civil.year(), civil.month().into(), civil.day(), civil.hour())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = self.civil();
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            t.year(),
            u8::from(t.month()),
            t.day(),
            t.hour(),
            t.minute(),
            t.second(),
            t.millisecond()
        )
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || Error::InvalidTimestamp { text: text.chars().take(80).collect() };
        let parsed = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| invalid())?;
        let ms = parsed.unix_timestamp_nanos() / 1_000_000;
        u64::try_from(ms).map(Self::from_millis).map_err(|_| invalid())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let t = Timestamp::from_millis(1_764_515_782_007);
        assert_eq!(t.to_string(), "2025-11-30T15:16:22.007Z");
        assert_eq!("2025-11-30T15:16:22.007Z".parse::<Timestamp>().unwrap(), t);
        assert_eq!("2025-11-30T16:16:22.007+01:00".parse::<Timestamp>().unwrap(), t);
        assert_eq!(Timestamp::from_millis(u64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
    }
}

//! Ranges and conditions of requests, as RFC 9110 has them.

use std::ops::Range;

/// What of an object is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// All of it.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes past its end.
    Unsatisfiable,
}

/// What a `Range` header selects of an object of `size` bytes. Several ranges, other units and
/// what cannot be read select all of it, and so does any range of an empty object.
pub(super) fn select(header: &str, size: u64) -> Selection {
    let Some((first, last)) = bounds(header) else { return Selection::Whole };
    if size == 0 {
        return Selection::Whole;
    }
    let range = match (first, last) {
        ("", "") => return Selection::Whole,
        ("", suffix) => size.saturating_sub(number(suffix))..size,
        (first, "") => number(first)..size,
        (first, last) if number(first) > number(last) => return Selection::Whole,
        (first, last) => number(first)..size.min(number(last).saturating_add(1)),
    };
    if range.is_empty() { Selection::Unsatisfiable } else { Selection::Part(range) }
}

/// The digits before and after the dash of a single range.
fn bounds(header: &str) -> Option<(&str, &str)> {
    let (unit, range) = header.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    let bounds = (first.trim_end(), last.trim_start());
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let single = digits(bounds.0) && digits(bounds.1);
    (unit.trim().eq_ignore_ascii_case("bytes") && single).then_some(bounds)
}

/// What is past 64 bits is past any object.
fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or(u64::MAX)
}

/// Whether an `If-None-Match` header names `etag`.
pub(super) fn names(header: &str, etag: &str) -> bool {
    header
        .split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_ranges() {
        for (header, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=2-", 2..10),
            ("bytes=-3", 7..10),
            ("bytes=-99", 0..10),
            ("bytes=4-99", 4..10),
            ("Bytes = 4 - 5", 4..6),
            ("bytes=9-99999999999999999999999", 9..10),
        ] {
            assert_eq!(select(header, 10), Selection::Part(expected), "{header}");
        }
        for header in ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(select(header, 10), Selection::Unsatisfiable, "{header}");
        }
        let ignored = [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-4",
            "bytes=0-1,3-4",
            "lines=0-1",
            "bytes=a-",
        ];
        for header in ignored {
            assert_eq!(select(header, 10), Selection::Whole, "{header}");
        }
        assert_eq!(select("bytes=0-", 0), Selection::Whole);
    }

    #[test]
    fn entity_tags() {
        assert!(names("\"a\"", "\"a\""));
        assert!(names("\"b\", W/\"a\"", "\"a\""));
        assert!(names("*", "\"a\""));
        assert!(!names("\"b\"", "\"a\""));
        assert!(!names("", "\"a\""));
    }
}

//! Durations in Go's syntax: what a sleeping handler writes into its pause's `duration`.

use std::fmt::Write as _;
use std::time::Duration;

/// The longest duration that can be written, about 292 years: Go's own limit.
pub const MAX: Duration = Duration::from_nanos(i64::MAX.unsigned_abs());

/// Why a text is not a duration that can be slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not in Go's syntax, or not finite.
    #[error("not a duration: write numbers with units, such as `1h2m3.5s` or `250ms`")]
    Syntax,
    /// Less than nothing.
    #[error("a duration cannot be negative")]
    Negative,
    /// Over [`MAX`].
    #[error("a duration cannot be longer than 292 years")]
    TooLong,
}

/// The units by name, in nanoseconds. Both spellings of the micro sign are Go's.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Decimals beyond this are below a nanosecond in every unit, and are dropped.
const MAX_DECIMALS: usize = 18;

/// Reads a duration: an optional sign and a sequence of decimal numbers, each with a unit out of
/// `ns`, `us`, `µs`, `ms`, `s`, `m` and `h`; or `0`. Fractions of a nanosecond are dropped.
///
/// # Errors
/// [`DurationError`] if it is not of that syntax, negative or over [`MAX`].
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned.is_empty() {
        return Err(DurationError::Syntax);
    }
    let mut nanos = 0;
    let mut rest = if unsigned == "0" { "" } else { unsigned };
    let mut too_long = false;
    while !rest.is_empty() {
        let (added, after) = part(rest)?;
        nanos = added.and_then(|added| added.checked_add(nanos)).unwrap_or_else(|| {
            too_long = true;
            u64::MAX
        });
        rest = after;
    }
    if negative && nanos > 0 {
        return Err(DurationError::Negative);
    }
    let duration = Duration::from_nanos(nanos);
    if too_long || duration > MAX { Err(DurationError::TooLong) } else { Ok(duration) }
}

/// The first number with its unit, in nanoseconds (`None` if they are too many), and what follows.
fn part(text: &str) -> Result<(Option<u64>, &str), DurationError> {
    let (whole, rest) = digits(text);
    let (decimals, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && decimals.is_empty() {
        return Err(DurationError::Syntax);
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let unit = UNITS.iter().find(|(unit, _)| *unit == name).ok_or(DurationError::Syntax)?.1;
    let whole = if whole.is_empty() { Some(0) } else { whole.parse::<u64>().ok() };
    let nanos = whole
        .and_then(|whole| whole.checked_mul(unit))
        .and_then(|nanos| nanos.checked_add(fraction(decimals, unit)));
    Ok((nanos, rest))
}

/// `0.<decimals>` of `unit`, rounded down.
fn fraction(decimals: &str, unit: u64) -> u64 {
    let mut numerator: u128 = 0;
    let mut denominator: u128 = 1;
    for digit in decimals.bytes().take(MAX_DECIMALS) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    u64::try_from(u128::from(unit) * numerator / denominator).unwrap_or(unit)
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Writes a duration as Go does: `1h2m3.5s`, `1m0s`, `250ms`, `1.5µs`, `0s`. [`parse`] reads what is
/// not over [`MAX`].
#[must_use]
pub fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => decimal(nanos, 1_000) + "\u{b5}s",
        1_000_000..1_000_000_000 => decimal(nanos, 1_000_000) + "ms",
        _ => {
            let minutes = duration.as_secs() / 60;
            let mut text = String::new();
            if minutes >= 60 {
                let _ = write!(text, "{}h", minutes / 60);
            }
            if minutes > 0 {
                let _ = write!(text, "{}m", minutes % 60);
            }
            text + &decimal(nanos % 60_000_000_000, 1_000_000_000) + "s"
        }
    }
}

/// `value / unit` in decimals without trailing zeros; `unit` is a power of ten.
fn decimal(value: u128, unit: u128) -> String {
    let (whole, fraction) = (value / unit, value % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let decimals = format!("{fraction:0width$}");
    format!("{whole}.{}", decimals.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        let cases: &[(&str, u64)] = &[
            ("0", 0),
            ("0s", 0),
            ("-0.00s", 0),
            ("60.00s", 60_000_000_000),
            ("1h2m3.5s", 3_723_500_000_000),
            ("250ms", 250_000_000),
            ("1us", 1_000),
            ("1µs", 1_000),
            ("1μs", 1_000),
            ("7ns", 7),
            ("1.9ns", 1),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("+2m", 120_000_000_000),
            ("1s1s", 2_000_000_000),
            ("0.333333333333333333333h", 1_199_999_999_999),
            ("9223372036854775807ns", 9_223_372_036_854_775_807),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse(text), Ok(Duration::from_nanos(*nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for text in
            ["", "+", "-", "s", ".s", "1", "1.5", "infs", "nans", "1e3s", "1 s", "3d", "--1s"]
        {
            assert_eq!(parse(text), Err(DurationError::Syntax), "{text}");
        }
        assert_eq!(parse("-0.50s"), Err(DurationError::Negative));
        for text in ["9223372036854775808ns", "3000000h", "99999999999999999999999s"] {
            assert_eq!(parse(text), Err(DurationError::TooLong), "{text}");
        }
    }

    #[test]
    fn writes_what_go_writes() {
        let cases: &[(u64, &str)] = &[
            (0, "0s"),
            (7, "7ns"),
            (1_500, "1.5µs"),
            (250_000_000, "250ms"),
            (2_050_000, "2.05ms"),
            (60_000_000_000, "1m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (3_723_500_000_000, "1h2m3.5s"),
            (1_000_000_001, "1.000000001s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(format(Duration::from_nanos(*nanos)), *text);
            assert_eq!(parse(text), Ok(Duration::from_nanos(*nanos)));
        }
    }
}

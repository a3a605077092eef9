//! The time of a session in memory.

use std::time::Duration;

/// How long after its start something is, written as the runtime writes times: as if the session had
/// been started at the beginning of the year 2000.
pub(super) fn time(after: Duration) -> String {
    let ms = after.as_millis();
    let (mut days, ms_of_day) = (ms / 86_400_000, ms % 86_400_000);
    let mut year = 2000;
    while days >= days_of(year) {
        days -= days_of(year);
        year += 1;
    }
    let mut month = 0;
    while days >= days_of_month(year, month) {
        days -= days_of_month(year, month);
        month += 1;
    }
    let (hours, minutes) = (ms_of_day / 3_600_000, ms_of_day / 60_000 % 60);
    let (seconds, millis) = (ms_of_day / 1_000 % 60, ms_of_day % 1_000);
    let (month, day) = (month + 1, days + 1);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64) -> u128 {
    if is_leap(year) { 366 } else { 365 }
}

/// Of a month from 0 to 11.
fn days_of_month(year: u64, month: usize) -> u128 {
    match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let day = 86_400;
        for (seconds, shown) in [
            (0, "2000-01-01T00:00:00.000Z"),
            (59 * day, "2000-02-29T00:00:00.000Z"),
            (60 * day + 3_661, "2000-03-01T01:01:01.000Z"),
            (366 * day - 1, "2000-12-31T23:59:59.000Z"),
            (366 * day, "2001-01-01T00:00:00.000Z"),
            (818_035_200, "2025-12-03T00:00:00.000Z"),
        ] {
            assert_eq!(time(Duration::from_secs(seconds)), shown);
        }
        assert_eq!(time(Duration::from_millis(1_500)), "2000-01-01T00:00:01.500Z");
    }
}

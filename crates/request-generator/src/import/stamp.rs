//! Time stamps as traces write them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, fmt::strtime};

use crate::cli::TimestampUnit;

/// What a CSV stamp may look like, for messages.
pub(super) const FORMS: &str = "seconds such as 12.5 (--timestamp-unit for others), or 2023-11-16 18:17:03.97 with Z or an offset \
     if not UTC";

/// A moment and how finely it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stamp {
    /// Since the epoch of the trace, which is any.
    pub(super) ns: i64,
    /// Written without a fraction of a second.
    pub(super) whole_second: bool,
}

/// Reads a number in `unit`, or a date and time.
pub(super) fn parse(text: &str, unit: TimestampUnit) -> Option<Stamp> {
    if text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(['-', ':', 'T']) {
        return number(text, unit);
    }
    let moment = text
        .parse::<Timestamp>()
        // Without a zone it is taken as UTC; only differences count.
        .or_else(|_| TimeZone::UTC.to_timestamp(text.parse::<DateTime>()?))
        .ok()?;
    of(moment, !text.contains(['.', ',']))
}

/// Reads the stamp of a log line: `10/Oct/2000:13:55:36 -0700`.
pub(super) fn parse_log(text: &str) -> Option<Stamp> {
    let moment = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text)
        .and_then(|broken| broken.to_timestamp())
        .ok()?;
    of(moment, true)
}

fn of(moment: Timestamp, whole_second: bool) -> Option<Stamp> {
    let ns = i64::try_from(moment.as_nanosecond()).ok()?;
    Some(Stamp { ns, whole_second })
}

/// A decimal, exactly; digits below a nanosecond are left out.
fn number(text: &str, unit: TimestampUnit) -> Option<Stamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let mut ns = whole.parse::<i64>().ok()?.checked_mul(unit.ns())?;
    let mut place_ns = unit.ns();
    for digit in fraction.bytes() {
        place_ns /= 10;
        ns = ns.checked_add(place_ns * i64::from(digit - b'0'))?;
    }
    let whole_second = matches!(unit, TimestampUnit::S) && fraction.is_empty();
    Some(Stamp { ns, whole_second })
}

#[cfg(test)]
mod tests {
    use super::{Stamp, parse, parse_log};
    use crate::cli::TimestampUnit;

    fn stamp(ns: i64, whole_second: bool) -> Option<Stamp> {
        Some(Stamp { ns, whole_second })
    }

    #[test]
    fn numbers_are_read_exactly_in_their_unit() {
        let read = |text| parse(text, TimestampUnit::S);
        assert_eq!(read("0"), stamp(0, true));
        assert_eq!(read("12.5"), stamp(12_500_000_000, false));
        assert_eq!(
            read("1700159823.979960001"),
            stamp(1_700_159_823_979_960_001, false)
        );
        assert_eq!(read("0.0000000019"), stamp(1, false));
        assert_eq!(parse("7", TimestampUnit::Ms), stamp(7_000_000, false));
        assert_eq!(parse("7.25", TimestampUnit::Us), stamp(7_250, false));
        assert_eq!(parse("7", TimestampUnit::Ns), stamp(7, false));
        for bad in [
            "",
            "1e3",
            "1.2.3",
            "0x10",
            "99999999999",
            "NaN",
            "inf",
            "1 2",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn dates_are_read_with_and_without_a_zone() {
        let read = |text| parse(text, TimestampUnit::S);
        // 2023-11-16 18:17:03 UTC, by `date -u -d ... +%s`.
        let ns = 1_700_158_623_000_000_000;
        assert_eq!(read("2023-11-16 18:17:03"), stamp(ns, true));
        assert_eq!(
            read("2023-11-16 18:17:03.9799600"),
            stamp(ns + 979_960_000, false)
        );
        assert_eq!(read("2023-11-16T18:17:03Z"), stamp(ns, true));
        assert_eq!(
            read("2023-11-16T20:17:03.5+02:00"),
            stamp(ns + 500_000_000, false)
        );
        assert_eq!(
            read("2023-11-16 20:17:03.5+02:00"),
            stamp(ns + 500_000_000, false)
        );
        for bad in [
            "2023-13-01 00:00:00",
            "yesterday",
            "2023-11-16 25:00:00",
            "-3",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn stamps_of_a_log_line_have_an_offset() {
        // 2000-10-10 20:55:36 UTC, the example of the Apache documentation.
        let ns = 971_211_336_000_000_000;
        assert_eq!(parse_log("10/Oct/2000:13:55:36 -0700"), stamp(ns, true));
        for bad in ["10/Oct/2000:13:55:36", "10/Okt/2000:13:55:36 -0700", ""] {
            assert_eq!(parse_log(bad), None, "{bad}");
        }
    }
}

//! Durations with a unit, as flags, strategy parameters and timelines spell them: `100ms`, `10s`.

use std::time::Duration;

/// Reads a non-negative decimal with one of the units ns, us, ms, s, min, h (`2.5s`, `100ms`).
///
/// # Errors
/// A lower-case reason that names the input and the form expected.
pub fn parse(text: &str) -> Result<Duration, String> {
    let expected = "a number with a unit such as 100ms, 2.5s or 10min";
    if lacks_unit(text) {
        return Err(format!(
            "duration \"{text}\" has no unit; expected {expected}"
        ));
    }
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let unit_at = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let ns_per_unit: f64 = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(format!("duration \"{text}\" is not {expected}")),
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("duration \"{text}\" is not {expected}"))?;
    let ns = value * ns_per_unit;
    if ns > 1e18 {
        return Err(format!("duration \"{text}\" is above 30 years"));
    }
    Ok(Duration::from_nanos(ns.round() as u64))
}

/// Whether `text` is a number where [`parse`] wants one with a unit.
pub fn lacks_unit(text: &str) -> bool {
    text.parse().is_ok_and(f64::is_finite)
}

/// The shortest text that [`parse`] reads back as the same duration: the largest unit that keeps a
/// whole number (`90s`, `1500ms`, `2min` only for whole minutes).
pub fn format(duration: Duration) -> String {
    let ns = duration.as_nanos();
    for (unit, size) in [
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ] {
        if ns != 0 && ns.is_multiple_of(size) {
            return format!("{}{unit}", ns / size);
        }
    }
    if ns == 0 {
        "0s".into()
    } else {
        format!("{ns}ns")
    }
}

#[cfg(test)]
mod tests {
    use super::{format, parse};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn units_are_read_and_required() {
        assert_eq!(parse("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse("2.5s"), Ok(Duration::from_millis(2500)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
        assert_eq!(parse("10min"), Ok(Duration::from_secs(600)));
        for bad in [
            "", "100", "-1s", "1.2.3s", "ms", "1 s", "nans", "1e400s", "5parsecs",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bare_number_is_told_to_lack_its_unit_and_nothing_else_is() {
        for bare in ["10", "2.5", "0", "-3", "1e3"] {
            let told = parse(bare).unwrap_err();
            assert!(told.contains("has no unit"), "{told}");
        }
        for other in ["", "ms", "10 s", "5parsecs", "nan", "inf", "10ms", "1.2.3"] {
            let told = parse(other).err().unwrap_or_default();
            assert!(!told.contains("has no unit"), "{told}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_duration_reads_back(ns in 0_u64..1 << 50) {
            let d = Duration::from_nanos(ns);
            prop_assert_eq!(parse(&format(d)), Ok(d));
        }
    }
}

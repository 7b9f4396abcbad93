//! How long a balancer waits for the reports that it asks for before a pick, as flags spell it:
//! `3ms`, or `off`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Timers of a balancer count whole milliseconds.
const LEAST: Duration = Duration::from_millis(1);
/// What a worker has not told by then says nothing of its present.
pub const MOST: Duration = Duration::from_secs(1);

/// The longest wait, if anybody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AskFirst(Option<Duration>);

impl AskFirst {
    /// Nobody is asked.
    pub const OFF: Self = Self(None);

    /// The longest wait; `None`: nobody is asked.
    pub fn wait(self) -> Option<Duration> {
        self.0
    }
}

impl FromStr for AskFirst {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::OFF);
        }
        let wait = crate::duration::parse(text)?;
        if !(LEAST..=MOST).contains(&wait) {
            let (least, most) = (duration(LEAST), duration(MOST));
            return Err(format!("must be between {least} and {most}, or off"));
        }
        Ok(Self(Some(wait)))
    }
}

impl fmt::Display for AskFirst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("off"),
            Some(wait) => f.write_str(&duration(wait)),
        }
    }
}

fn duration(d: Duration) -> String {
    crate::duration::format(d)
}

#[cfg(test)]
mod tests {
    use super::AskFirst;
    use std::time::Duration;

    #[test]
    fn a_wait_is_read_within_its_bounds_and_printed_as_it_is_read() {
        for (text, ms) in [("3ms", 3.0), ("1ms", 1.0), ("1s", 1000.0), ("2500us", 2.5)] {
            let read: AskFirst = text.parse().unwrap();
            assert_eq!(
                read.wait(),
                Some(Duration::from_secs_f64(ms / 1e3)),
                "{text}"
            );
            assert_eq!(read.to_string(), text);
        }
        assert_eq!("off".parse(), Ok(AskFirst::OFF));
        assert_eq!(AskFirst::OFF.to_string(), "off");
        for (text, part) in [
            ("0s", "between 1ms and 1s"),
            ("999us", "between 1ms and 1s"),
            ("1001ms", "between 1ms and 1s"),
            ("10h", "between 1ms and 1s"),
            ("0", "unit"),
            ("3", "unit"),
            ("-1ms", "-1ms"),
            ("", "unit"),
            ("on", "on"),
        ] {
            let refused = text.parse::<AskFirst>().unwrap_err();
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }
}

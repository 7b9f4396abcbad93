//! The one place that reads the operating system's clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};
use strategies::Time;

/// Time 0 of a run and what has passed since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    started_unix_ns: u64,
}

impl Clock {
    /// Time 0 is now.
    pub(crate) fn start() -> Self {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            start: Instant::now(),
            started_unix_ns: unix.as_nanos() as u64,
        }
    }

    /// Nanoseconds since time 0.
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Wall time of time 0, ns since 1970.
    pub(crate) fn started_unix_ns(&self) -> u64 {
        self.started_unix_ns
    }
}

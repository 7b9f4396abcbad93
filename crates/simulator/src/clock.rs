//! The run's clock: nanoseconds of the monotonic clock, counted from the run's time 0.
//!
//! Time 0 is set once, a little in the future, after the first connections are open. All threads
//! share one clock, so that every stamp of a row counts from the same instant.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock with a movable zero.
#[derive(Debug)]
pub(crate) struct Clock {
    origin: Instant,
    /// Time 0 of the run, ns after `origin`.
    zero_ns: AtomicU64,
}

impl Clock {
    /// A clock whose time 0 is now.
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            zero_ns: AtomicU64::new(0),
        }
    }

    /// Puts time 0 `ahead` into the future and returns its wall time, ns since 1970.
    pub(crate) fn set_zero_in(&self, ahead: Duration) -> u64 {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let ahead_ns = ahead.as_nanos() as u64;
        self.zero_ns
            .store(self.raw_ns() + ahead_ns, Ordering::Release);
        wall.map_or(0, |d| d.as_nanos() as u64) + ahead_ns
    }

    /// Now, ns after the clock was made; never 0, so that 0 can mean "no stamp".
    pub(crate) fn raw_ns(&self) -> u64 {
        (self.origin.elapsed().as_nanos() as u64).max(1)
    }

    /// A raw stamp as ns after time 0; what lies before time 0 counts as 0.
    pub(crate) fn since_zero(&self, raw_ns: u64) -> u64 {
        raw_ns.saturating_sub(self.zero_ns.load(Ordering::Acquire))
    }

    /// Now, ns after time 0.
    pub(crate) fn now_ns(&self) -> u64 {
        self.since_zero(self.raw_ns())
    }

    /// What is left until `due_ns` after time 0; zero when it has passed.
    pub(crate) fn until(&self, due_ns: u64) -> Duration {
        let due_raw = self.zero_ns.load(Ordering::Acquire) + due_ns;
        Duration::from_nanos(due_raw.saturating_sub(self.raw_ns()))
    }
}

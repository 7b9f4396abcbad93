//! The only place that reads clocks.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Time since the start of the process, with the wall time of that start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: Instant,
    origin_unix_ns: u64,
}

impl Clock {
    /// A clock whose time 0 is now.
    pub(crate) fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            origin: Instant::now(),
            origin_unix_ns: since_epoch.map_or(0, |d| d.as_nanos() as u64),
        }
    }

    /// Nanoseconds since time 0.
    pub(crate) fn now_ns(&self) -> f64 {
        self.origin.elapsed().as_nanos() as f64
    }

    /// The wall time of a stamp of this clock, ns since 1970. It follows the monotonic clock, so two
    /// stamps are as far apart as their times whatever is done to the wall clock.
    pub(crate) fn unix_ns(&self, at_ns: f64) -> u64 {
        self.origin_unix_ns + at_ns.max(0.0) as u64
    }
}

/// CPU time used by the whole process, ns.
pub(crate) fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

/// CPU time used by the calling thread, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

fn cpu_ns(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

//! Integrals over time of what a station holds and uses.

use crate::sum::Sum;

/// What was used since time 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Used {
    /// Integral of the number held, request-seconds.
    pub held: f64,
    /// Integral of busy cores, core-seconds.
    pub busy: f64,
    /// Integral of speed times busy cores: work done, core-seconds at speed 1.
    pub work: f64,
}

/// The running integrals.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meter {
    held: Sum,
    busy: Sum,
    work: Sum,
}

impl Meter {
    /// Lets `dt` seconds pass.
    #[inline]
    pub(super) fn pass(&mut self, dt: f64, held: f64, busy: f64, speed: f64) {
        self.held.add(dt * held);
        self.busy.add(dt * busy);
        self.work.add(dt * busy * speed);
    }

    /// The integrals, with `dt` more seconds at these values.
    pub(super) fn after(&self, dt: f64, held: f64, busy: f64, speed: f64) -> Used {
        let mut later = *self;
        later.pass(dt, held, busy, speed);
        Used {
            held: later.held.value(),
            busy: later.busy.value(),
            work: later.work.value(),
        }
    }
}

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

/// The running integrals. Work follows from busy cores while the speed stays. Both gather in plain sums
/// that are emptied in time, as a [`crate::sum::Tray`] does.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter {
    held: f64,
    busy: f64,
    past: Box<Past>,
}

/// What is rarely looked at.
#[derive(Debug, Clone, Default)]
struct Past {
    /// What was emptied so far.
    held: Sum,
    busy: Sum,
    /// Work done, and busy cores, when the speed changed last.
    work_then: f64,
    busy_then: f64,
}

impl Meter {
    /// Lets `dt` seconds pass.
    #[inline(always)]
    pub(super) fn pass(&mut self, dt: f64, held: f64, busy: f64) {
        self.held += dt * held;
        self.busy += dt * busy;
    }

    /// Empties the plain sums.
    pub(super) fn settle(&mut self) {
        self.past.held.add(self.held);
        self.past.busy.add(self.busy);
        (self.held, self.busy) = (0.0, 0.0);
    }

    /// Closes the account at `speed`; what follows runs at another.
    pub(super) fn change_speed(&mut self, speed: f64) {
        self.settle();
        let busy = self.past.busy.value();
        self.past.work_then = self.past.work_at(busy, speed);
        self.past.busy_then = busy;
    }

    /// The integrals, with `dt` more seconds at these values.
    pub(super) fn after(&self, dt: f64, held: f64, busy: f64, speed: f64) -> Used {
        let with = |mut sum: Sum, open: f64, more: f64| {
            sum.add(open);
            sum.add(more);
            sum.value()
        };
        let busy = with(self.past.busy, self.busy, dt * busy);
        Used {
            held: with(self.past.held, self.held, dt * held),
            busy,
            work: self.past.work_at(busy, speed),
        }
    }
}

impl Past {
    /// Work done once `busy` is the integral of busy cores.
    fn work_at(&self, busy: f64, speed: f64) -> f64 {
        self.work_then + speed * (busy - self.busy_then)
    }
}

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

/// The running integrals. Work follows from busy cores while the speed stays. The number held, which is
/// only checked, gathers in a plain sum that is emptied in time, as a [`crate::sum::Tray`] does.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter {
    held: f64,
    busy: Sum,
    past: Box<Past>,
}

/// What is rarely looked at.
#[derive(Debug, Clone, Default)]
struct Past {
    /// What was emptied of the number held.
    held: Sum,
    /// Work done, and busy cores, when the speed changed last.
    work: f64,
    busy: f64,
}

impl Meter {
    /// Lets `dt` seconds pass.
    #[inline]
    pub(super) fn pass(&mut self, dt: f64, held: f64, busy: f64) {
        self.held += dt * held;
        self.busy.add(dt * busy);
    }

    /// Empties the plain sum.
    pub(super) fn settle(&mut self) {
        self.past.held.add(self.held);
        self.held = 0.0;
    }

    /// Closes the account at `speed`; what follows runs at another.
    pub(super) fn change_speed(&mut self, speed: f64) {
        self.past.work = self.work_at(self.busy, speed);
        self.past.busy = self.busy.value();
    }

    /// The integrals, with `dt` more seconds at these values.
    pub(super) fn after(&self, dt: f64, held: f64, busy: f64, speed: f64) -> Used {
        let mut later = self.busy;
        later.add(dt * busy);
        let mut all_held = self.past.held;
        all_held.add(self.held);
        Used {
            held: all_held.value() + dt * held,
            busy: later.value(),
            work: self.work_at(later, speed),
        }
    }

    /// Work done once `busy` is the integral of busy cores.
    fn work_at(&self, busy: Sum, speed: f64) -> f64 {
        self.past.work + speed * (busy.value() - self.past.busy)
    }
}

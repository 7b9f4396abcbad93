//! Integrals over time of what a station holds and uses.

use crate::sum::{Sum, Tray};

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

/// The running integrals. Work follows from busy cores while the speed stays.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter {
    held: Tray,
    busy: Sum,
    /// Work done, and busy cores, when the speed changed last.
    work_before: f64,
    busy_before: f64,
}

impl Meter {
    /// Lets `dt` seconds pass.
    #[inline]
    pub(super) fn pass(&mut self, dt: f64, held: f64, busy: f64) {
        self.held.add(dt * held);
        self.busy.add(dt * busy);
    }

    /// Empties the tray.
    pub(super) fn settle(&mut self) {
        self.held.empty();
    }

    /// Closes the account at `speed`; what follows runs at another.
    pub(super) fn change_speed(&mut self, speed: f64) {
        self.work_before = self.work_at(self.busy, speed);
        self.busy_before = self.busy.value();
    }

    /// The integrals, with `dt` more seconds at these values.
    pub(super) fn after(&self, dt: f64, held: f64, busy: f64, speed: f64) -> Used {
        let mut later = self.busy;
        later.add(dt * busy);
        Used {
            held: self.held.value() + dt * held,
            busy: later.value(),
            work: self.work_at(later, speed),
        }
    }

    /// Work done once `busy` is the integral of busy cores.
    fn work_at(&self, busy: Sum, speed: f64) -> f64 {
        self.work_before + speed * (busy.value() - self.busy_before)
    }
}

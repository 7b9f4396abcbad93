//! Measuring by samples of own requests.

use crate::registry::{Kind, Parameter};
use crate::time::Time;
use std::collections::VecDeque;

/// The parameter `forget`.
pub(crate) const FORGET: Parameter = Parameter {
    name: "forget",
    kind: Kind::Duration {
        min_ns: 100_000_000,
        max_ns: 3_600_000_000_000,
    },
    or: &["never"],
    default: "never",
    summary: "an idle backend without a response for this long counts as unsampled",
};

/// When an idle backend whose last sample came at `last` is forgotten, if that is still to come.
pub(crate) fn forgotten_at(last: Time, now: Time, forget_ns: Option<u64>) -> Time {
    let end = forget_ns.map_or(Time::MAX, |f| last.plus_ns(f));
    if end > now { end } else { Time::MAX }
}

/// Milliseconds of a span in ns.
pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The last so many samples of a backend and their sum; all since the start if the window is 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window {
    samples: VecDeque<u64>,
    count: u64,
    sum: u128,
    /// When the last sample came.
    pub(crate) last: Time,
}

impl Window {
    /// Takes a sample; what came before a pause of `forget_ns` is dropped first.
    pub(crate) fn push(&mut self, now: Time, sample: u64, length: usize, forget_ns: Option<u64>) {
        if forget_ns.is_some_and(|f| now.since_ns(self.last) >= f) {
            *self = Self::default();
        }
        self.last = now;
        self.sum += u128::from(sample);
        self.count += 1;
        if length == 0 {
            return;
        }
        self.samples.push_back(sample);
        if self.samples.len() > length {
            let oldest = self.samples.pop_front().unwrap_or(0);
            self.sum -= u128::from(oldest);
            self.count -= 1;
        }
    }

    /// Mean of the samples, unless there is none or an idle backend's are forgotten.
    pub(crate) fn mean(&self, now: Time, in_flight: u32, forget_ns: Option<u64>) -> Option<f64> {
        let forgotten = in_flight == 0 && forget_ns.is_some_and(|f| now.since_ns(self.last) >= f);
        (self.count > 0 && !forgotten).then(|| self.sum as f64 / self.count as f64)
    }
}

/// The mean of some numbers; `None` of none.
pub(crate) fn mean_of(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

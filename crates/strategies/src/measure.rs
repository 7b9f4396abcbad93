//! Measuring a backend from what workers say.

use crate::backends::{Backend, Backends};
use crate::registry::{Context, Kind, Parameter, Spec};
use crate::time::Time;
use crate::values::BackendId;
use schema::report::Report;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// The parameter `max-age`.
pub(crate) const MAX_AGE: Parameter = Parameter {
    name: "max-age",
    kind: Kind::Duration {
        min_ns: 1_000_000,
        max_ns: 600_000_000_000,
    },
    or: &[],
    default: "3 poll intervals",
    summary: "a report older than this counts as absent",
};

/// What the parameter `max-age` says, ns.
pub(crate) fn max_age_ns(spec: &Spec, context: &Context) -> u64 {
    let three = context.poll_interval_ns.saturating_mul(3);
    spec.duration_ns("max-age").unwrap_or(three)
}

/// The newest report of the statistics page with an active count, unless it is too old.
pub(crate) fn fresh(backend: &Backend, now: Time, max_age_ns: u64) -> Option<(&Report, u32)> {
    let report = backend.newest_stats()?;
    let age_ns = now.since_ns(Time::from_nanos(report.sampled_at_ns));
    let active = report.active?;
    (age_ns <= max_age_ns).then_some((report, active))
}
/// Requests at a backend, whoever sent them, as of now: own in_flight, and the others' as of the
/// report. Never below own in_flight; without a usable report just that.
pub(crate) fn live_estimate(backend: &Backend, now: Time, max_age_ns: u64) -> u64 {
    let others = fresh(backend, now, max_age_ns).map_or(0, |(report, active)| {
        active.saturating_sub(report.in_flight_before)
    });
    u64::from(backend.in_flight) + u64::from(others)
}

/// State per backend, by id; grows as ids are given.
#[derive(Debug, Clone, Default)]
pub(crate) struct ById<T>(Vec<T>);

impl<T: Clone + Default> ById<T> {
    /// A backend's state, if it has any yet.
    pub(crate) fn get(&self, id: BackendId) -> Option<&T> {
        self.0.get(id.index())
    }

    /// A backend's state, made on first use.
    pub(crate) fn of(&mut self, id: BackendId) -> &mut T {
        if id.index() >= self.0.len() {
            self.0.resize(id.index() + 1, T::default());
        }
        &mut self.0[id.index()]
    }

    /// Makes room for every id given so far.
    pub(crate) fn make_room(&mut self, backends: &Backends) {
        self.0.resize(backends.ids_len(), T::default());
    }

    /// Everyone's state.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}

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

/// Milliseconds of a span in ns.
pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// What a backend without a sample is worth until it has one: while it is idle it comes before every
/// sampled one, else it counts as the mean of the sampled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rank {
    on_probation: bool,
    load: f64,
}

impl Rank {
    /// Of a backend with a sample, or of a busy one without.
    pub(crate) fn of_load(load: f64) -> Self {
        Self {
            on_probation: false,
            load,
        }
    }

    /// Of an idle backend without a sample: before all others.
    pub(crate) fn first() -> Self {
        Self {
            on_probation: true,
            load: 0.0,
        }
    }

    /// The lower one is picked.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        other
            .on_probation
            .cmp(&self.on_probation)
            .then(self.load.total_cmp(&other.load))
    }
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

//! Measuring a backend: a comparable number from what was seen of it and what it says of itself.
//!
//! A measure knows nothing of other backends and chooses nothing. How the least of them is found is
//! the other half: [`crate::choose`].

mod load;
mod reports;
mod samples;
mod typical;

pub(crate) use load::{Load, Rank};
pub(crate) use reports::{MAX_AGE, fresh, fresh_until, live_estimate, max_age_ns};
pub(crate) use samples::{FORGET, Window, forgotten_at, mean_of, ms};
pub(crate) use typical::{Parts, Sums, Typical, part};

use crate::backends::{Backend, Backends};
use crate::choose::Key;
use crate::time::Time;
use crate::values::{BackendId, Outcome};
use schema::report::Report;

/// What a strategy compares backends by; the least is picked.
///
/// A key depends on its own backend and on time only, so it can be kept until something happens to
/// that backend.
pub(crate) trait Measure: std::fmt::Debug + Clone + Send + 'static {
    /// The comparable number.
    type Key: Key;

    /// A backend's key now.
    fn key(&self, now: Time, backend: &Backend) -> Self::Key;

    /// When the key changes by the mere passing of time; the end of time if it does not.
    fn holds_until(&self, _now: Time, _backend: &Backend) -> Time {
        Time::MAX
    }
}

/// A measure that needs samples, such as a mean latency.
///
/// A backend without one is on probation: idle, it comes before every other; busy, it counts as what
/// is typical of the others.
pub(crate) trait Sampled: std::fmt::Debug + Clone + Send + 'static {
    /// What is known of a backend.
    type Sample: Copy + PartialEq + std::fmt::Debug + Send;

    /// What is known of it now; `None`: nothing usable.
    fn sample(&self, now: Time, backend: &Backend) -> Option<Self::Sample>;

    /// What of a sample is averaged for what is typical.
    fn parts(&self, epoch: u64, sample: Self::Sample) -> Parts;

    /// Grows with time, if parts depend on it; seldom, since all are made anew then.
    fn epoch(&self, _now: Time) -> u64 {
        0
    }

    /// What is typical of some, of whom these are the sums; there may be none.
    fn typical(&self, now: Time, known: &Sums) -> Self::Sample;

    /// The load of a backend of which this is known or assumed.
    fn load(&self, backend: &Backend, sample: Self::Sample) -> f64;

    /// When what is known changes by the mere passing of time; the end of time if it does not.
    fn known_until(&self, _now: Time, _backend: &Backend) -> Time {
        Time::MAX
    }

    /// Takes a response in.
    fn learn(&mut self, now: Time, id: BackendId, outcome: &Outcome, backends: &Backends);

    /// Takes a report in.
    fn learn_report(&mut self, _id: BackendId, _report: &Report) {}

    /// Makes room for every id given so far.
    fn make_room(&mut self, backends: &Backends);
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

    /// Everyone's state, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Everyone's state.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}

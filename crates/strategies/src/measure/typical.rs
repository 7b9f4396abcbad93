//! What is typical of the backends with a sample, kept up as samples change.
//!
//! Making it anew at each pick takes O(n); here a changed sample is taken away and added again, O(1).
//! Parts are whole numbers, so that taking one away leaves no trace and the sums are those of looking
//! through.

use super::{ById, Sampled};
use crate::backends::Backends;
use crate::time::Time;
use crate::values::BackendId;

/// What of a sample is averaged, in whole units that its measure chooses.
pub(crate) type Parts = [i128; 2];

/// Largest part: those of all members that a pool may have can be added.
const MOST: f64 = (i128::MAX / crate::backends::MAX_MEMBERS as i128) as f64;

/// A number of units as a part; one that is no number counts as none, a huge one as the most.
pub(crate) fn part(units: f64) -> i128 {
    units.clamp(0.0, MOST / 2.0).round() as i128
}

/// Sums of the parts of some samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    parts: Parts,
    count: u32,
}

impl Sums {
    /// Of these.
    pub(crate) fn of(all: impl Iterator<Item = Parts>) -> Self {
        let mut sums = Self::default();
        all.for_each(|parts| sums.add(parts));
        sums
    }

    /// The mean of the `i`-th part; `None` of none.
    pub(crate) fn mean(&self, i: usize) -> Option<f64> {
        (self.count > 0).then(|| self.parts[i] as f64 / f64::from(self.count))
    }

    fn add(&mut self, parts: Parts) {
        self.count += 1;
        self.parts.iter_mut().zip(parts).for_each(|(s, p)| *s += p);
    }

    fn take_away(&mut self, parts: Parts) {
        self.count -= 1;
        self.parts.iter_mut().zip(parts).for_each(|(s, p)| *s -= p);
    }
}

/// The samples of the available backends and their sums, in pools above a size; smaller ones are looked
/// through.
#[derive(Debug, Clone)]
pub(crate) struct Typical<S> {
    few: usize,
    is_kept: bool,
    epoch: u64,
    samples: ById<Option<S>>,
    sums: Sums,
}

impl<S: Copy + PartialEq> Typical<S> {
    /// Sums of pools above `few`.
    pub(crate) fn above(few: usize) -> Self {
        Self {
            few,
            is_kept: false,
            epoch: 0,
            samples: ById::default(),
            sums: Sums::default(),
        }
    }

    /// Takes all samples anew, after a change of the pool; O(n).
    pub(crate) fn rebuild<M>(&mut self, measure: &M, now: Time, backends: &Backends)
    where
        M: Sampled<Sample = S>,
    {
        self.is_kept = backends.available_ids().len() > self.few;
        self.samples = ById::default();
        self.samples.make_room(backends);
        if self.is_kept {
            for backend in backends.available() {
                *self.samples.of(backend.id) = measure.sample(now, backend);
            }
        }
        self.begin_epoch(measure, measure.epoch(now));
    }

    /// Takes over a backend's sample if its pool is large.
    pub(crate) fn changed<M>(&mut self, measure: &M, now: Time, id: BackendId, backends: &Backends)
    where
        M: Sampled<Sample = S>,
    {
        if !self.is_kept || backends.available_place(id).is_none() {
            return;
        }
        let sample = backends.get(id).and_then(|b| measure.sample(now, b));
        let known = self.samples.of(id);
        if *known == sample {
            return;
        }
        if let Some(old) = std::mem::replace(known, sample) {
            self.sums.take_away(measure.parts(self.epoch, old));
        }
        if let Some(new) = sample {
            self.sums.add(measure.parts(self.epoch, new));
        }
    }

    /// Sums over the eligible.
    pub(crate) fn sums<M>(&mut self, measure: &M, now: Time, backends: &Backends) -> Sums
    where
        M: Sampled<Sample = S>,
    {
        let epoch = measure.epoch(now);
        if !self.is_kept {
            let known = backends.eligible().filter_map(|b| measure.sample(now, b));
            return Sums::of(known.map(|sample| measure.parts(epoch, sample)));
        }
        if epoch != self.epoch {
            self.begin_epoch(measure, epoch);
        }
        let mut sums = self.sums;
        for id in backends.left_out() {
            if let Some(sample) = self.samples.get(id).copied().flatten() {
                sums.take_away(measure.parts(epoch, sample));
            }
        }
        sums
    }

    /// All parts are other ones from now on; O(n).
    fn begin_epoch(&mut self, measure: &impl Sampled<Sample = S>, epoch: u64) {
        self.epoch = epoch;
        let known = self.samples.iter().flatten();
        self.sums = Sums::of(known.map(|sample| measure.parts(epoch, *sample)));
    }
}

#[cfg(test)]
mod tests {
    use super::{Parts, Sums, Typical, part};
    use crate::Time;
    use crate::backends::{Backend, Backends};
    use crate::measure::{ById, Sampled};
    use crate::tests::pools::members;
    use crate::values::{BackendId, Outcome};
    use proptest::prelude::*;
    use std::cell::Cell;

    /// Every backend's sample is the number last set; parts double with each second.
    #[derive(Debug, Clone, Default)]
    struct Set {
        numbers: ById<Option<u32>>,
        asked: Cell<u32>,
    }

    impl Sampled for Set {
        type Sample = u32;

        fn sample(&self, _now: Time, backend: &Backend) -> Option<u32> {
            self.asked.set(self.asked.get() + 1);
            self.numbers.get(backend.id).copied().flatten()
        }

        fn parts(&self, epoch: u64, sample: u32) -> Parts {
            [part(f64::from(sample) * libm::exp2(epoch as f64)), 1]
        }

        fn epoch(&self, now: Time) -> u64 {
            now.as_nanos() / 1_000_000_000
        }

        fn typical(&self, _now: Time, _known: &Sums) -> u32 {
            0
        }

        fn load(&self, _backend: &Backend, sample: u32) -> f64 {
            f64::from(sample)
        }

        fn learn(&mut self, _now: Time, _id: BackendId, _outcome: &Outcome, _backends: &Backends) {}

        fn make_room(&mut self, _backends: &Backends) {}
    }

    fn pool(n: u32) -> Backends {
        let mut backends = Backends::new(None);
        for (id, member) in (0..).zip(members(&vec![1; n as usize])) {
            backends.push(Backend::new(BackendId(id), &member));
        }
        backends.relist();
        backends
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// A backend's sample becomes this.
        Set(u32, Option<u32>),
        LeaveOut(u32),
        /// The pick is over; so many ms pass.
        Pass(u64),
        /// A backend is drained or comes back.
        Turn(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        let id = || 0_u32..8;
        prop_oneof![
            4 => (id(), prop::option::of(any::<u32>())).prop_map(|(id, x)| Step::Set(id, x)),
            2 => id().prop_map(Step::LeaveOut),
            2 => (0_u64..1500).prop_map(Step::Pass),
            1 => id().prop_map(Step::Turn),
        ]
    }

    proptest! {
        #[test]
        fn kept_sums_are_those_of_looking_through(steps in prop::collection::vec(step(), 0..120)) {
            let (mut measure, mut backends) = (Set::default(), pool(8));
            let (mut kept, mut slow) = (Typical::above(0), Typical::above(usize::MAX));
            let mut now = Time::ZERO;
            kept.rebuild(&measure, now, &backends);
            slow.rebuild(&measure, now, &backends);
            for step in steps {
                match step {
                    Step::Set(id, number) => {
                        *measure.numbers.of(BackendId(id)) = number;
                        kept.changed(&measure, now, BackendId(id), &backends);
                    }
                    Step::LeaveOut(id) => backends.leave_out(BackendId(id)),
                    Step::Pass(ms) => {
                        backends.end_pick();
                        now = now.plus_ns(ms * 1_000_000);
                    }
                    Step::Turn(id) => {
                        backends.end_pick();
                        let backend = backends.get_mut(BackendId(id)).expect("a member");
                        backend.draining = !backend.draining;
                        backends.relist();
                        kept.rebuild(&measure, now, &backends);
                    }
                }
                let looked_through = slow.sums(&measure, now, &backends);
                prop_assert_eq!(kept.sums(&measure, now, &backends), looked_through);
            }
        }
    }

    #[test]
    fn a_change_looks_at_nobody_else() {
        let (mut measure, backends) = (Set::default(), pool(1000));
        let mut kept = Typical::above(16);
        kept.rebuild(&measure, Time::ZERO, &backends);
        measure.asked.set(0);
        for id in (0..50).map(BackendId) {
            *measure.numbers.of(id) = Some(id.0);
            kept.changed(&measure, Time::ZERO, id, &backends);
            assert!(kept.sums(&measure, Time::ZERO, &backends).mean(0).is_some());
        }
        assert_eq!(measure.asked.get(), 50);
    }

    #[test]
    fn what_is_no_number_counts_as_none_and_all_of_the_largest_can_be_added() {
        assert_eq!((part(f64::NAN), part(-1.0)), (0, 0));
        let most = part(f64::INFINITY);
        assert!(
            most.checked_mul(crate::backends::MAX_MEMBERS as i128)
                .is_some()
        );
    }
}

//! The least of a measure that needs samples, with probation for those without one.

use crate::backends::{Backend, Backends};
use crate::choose::{Credits, Key as _, Ranking, Ties, least, one_of_least};
use crate::measure::{Rank, Sampled};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::report::Report;
use std::cell::Cell;

/// Picks the eligible backend of least load; one on probation first while it is idle. Ties random.
///
/// While some busy backend has no sample yet, what is typical of the others is made anew at each pick,
/// which takes O(n); its first answer, or its timeout, ends that.
#[derive(Debug, Clone)]
pub(super) struct LeastSampled<M: Sampled> {
    pub(super) measure: M,
    ranking: Ranking<Rank>,
    /// Ranked ones that are busy without a sample.
    waiting: usize,
    credits: Credits,
}

impl<M: Sampled> LeastSampled<M> {
    /// Looks through pools of up to `few` at each pick.
    pub(super) fn new(measure: M, few: usize) -> Self {
        Self {
            measure,
            ranking: Ranking::above(few),
            waiting: 0,
            credits: Credits::default(),
        }
    }

    /// The rank that a backend has by itself; last if that depends on the others.
    fn own_rank(measure: &M, now: Time, backend: &Backend) -> Rank {
        match measure.sample(now, backend) {
            Some(sample) => Rank::of_load(measure.load(backend, sample)),
            None if backend.in_flight == 0 => Rank::FIRST,
            None => Rank::LAST,
        }
    }

    /// One of some, by their ranks. O(n) if any of them has to be taken as typical.
    pub(super) fn among<'a>(
        &mut self,
        now: Time,
        some: impl Iterator<Item = &'a Backend> + Clone,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let (measure, credits) = (&self.measure, &mut self.credits);
        let somebody_waits = Cell::new(false);
        let rank = |b: &Backend| {
            let rank = Self::own_rank(measure, now, b);
            somebody_waits.set(somebody_waits.get() || rank == Rank::LAST);
            rank
        };
        let least = least(some.clone(), rank)?;
        if least.key == Rank::FIRST || !somebody_waits.get() {
            return least.one(some, Ties::Random, credits, rng, rank);
        }
        let known = backends.eligible().filter_map(|b| measure.sample(now, b));
        let typical = measure.typical(now, known);
        one_of_least(some, Ties::Random, credits, rng, |b| {
            let sample = measure.sample(now, b).unwrap_or(typical);
            Rank::of_load(measure.load(b, sample))
        })
    }

    fn rekey(&mut self, now: Time, id: BackendId, backends: &Backends) {
        let measure = &self.measure;
        let keyed = |b: &Backend| (Self::own_rank(measure, now, b), measure.known_until(now, b));
        if let Some((before, after)) = self.ranking.rekey(backends, id, keyed) {
            self.waiting += usize::from(after == Rank::LAST);
            self.waiting -= usize::from(before == Rank::LAST);
        }
    }

    fn first_or_sampled(&mut self, backends: &Backends, rng: &mut Rng) -> Option<BackendId> {
        let (rank, _) = self.ranking.least()?;
        if rank > Rank::FIRST && self.waiting > 0 {
            return None;
        }
        self.ranking
            .one_of_least(backends, Ties::Random, &mut self.credits, rng)
    }
}

impl<M: Sampled> Strategy for LeastSampled<M> {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if self.ranking.is_kept() {
            while let Some(id) = self.ranking.due(now, backends) {
                self.rekey(now, id, backends);
            }
            self.ranking.begin_pick(backends);
            let picked = self.first_or_sampled(backends, rng);
            self.ranking.end_pick();
            if picked.is_some() {
                return picked;
            }
        }
        self.among(now, backends.eligible(), backends, rng)
    }

    fn on_dispatch(
        &mut self,
        now: Time,
        id: BackendId,
        _request: &Request<'_>,
        backends: &Backends,
    ) {
        self.rekey(now, id, backends);
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, backends: &Backends) {
        self.measure.learn(now, id, outcome, backends);
        self.rekey(now, id, backends);
    }

    fn on_stats(&mut self, now: Time, id: BackendId, report: &Report, backends: &Backends) {
        self.measure.learn_report(id, report);
        self.rekey(now, id, backends);
    }

    fn on_backends_changed(&mut self, now: Time, backends: &Backends) {
        self.measure.make_room(backends);
        let measure = &self.measure;
        let rank = |b: &Backend| Self::own_rank(measure, now, b);
        let keyed = |b: &Backend| (rank(b), measure.known_until(now, b));
        self.ranking.rebuild(backends, keyed);
        let is_kept = self.ranking.is_kept();
        let waits = |b: &&Backend| is_kept && rank(b) == Rank::LAST;
        self.waiting = backends.available().filter(waits).count();
    }
}

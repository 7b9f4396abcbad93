//! The least of a measure that needs samples, with probation for those without one.

use crate::backends::{Backend, Backends};
use crate::choose::{Credits, Key as _, Least, Ranking, Ties, least, one_of_least};
use crate::measure::{Rank, Sampled, Typical};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::report::Report;
use std::cell::Cell;

/// Picks the eligible backend of least load; one on probation first while it is idle. Ties random.
///
/// O(log n) and one step for each busy backend without a sample; O(n) only if several are best and such
/// a one is among them.
#[derive(Debug, Clone)]
pub(super) struct LeastSampled<M: Sampled> {
    pub(super) measure: M,
    ranking: Ranking<Rank>,
    typical: Typical<M::Sample>,
    /// Ranked ones that are busy without a sample.
    waiting: Vec<BackendId>,
    credits: Credits,
}

impl<M: Sampled> LeastSampled<M> {
    /// Looks through pools of up to `few` at each pick.
    pub(super) fn new(measure: M, few: usize) -> Self {
        Self {
            measure,
            ranking: Ranking::above(few),
            typical: Typical::above(few),
            waiting: Vec::new(),
            credits: Credits::default(),
        }
    }

    /// For [`Self::among`] alone: nobody but those drawn is ranked.
    pub(super) fn of_drawn(measure: M, few: usize) -> Self {
        Self {
            ranking: Ranking::above(usize::MAX),
            ..Self::new(measure, few)
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

    /// One of some, by their ranks.
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
        let known = self.typical.sums(measure, now, backends);
        let typical = measure.typical(now, &known);
        one_of_least(some, Ties::Random, credits, rng, |b| {
            let sample = measure.sample(now, b).unwrap_or(typical);
            Rank::of_load(measure.load(b, sample))
        })
    }

    fn rekey(&mut self, now: Time, id: BackendId, backends: &Backends) {
        let measure = &self.measure;
        self.typical.changed(measure, now, id, backends);
        let keyed = |b: &Backend| (Self::own_rank(measure, now, b), measure.known_until(now, b));
        if let Some((before, after)) = self.ranking.rekey(backends, id, keyed) {
            match (before == Rank::LAST, after == Rank::LAST) {
                (false, true) => self.waiting.push(id),
                (true, false) => self.waiting.retain(|waiting| *waiting != id),
                _ => {}
            }
        }
    }

    /// The least of those that are taken as typical; `None` if there is nobody.
    fn least_of_waiting(&mut self, now: Time, backends: &Backends) -> Option<Least<Rank>> {
        if self.waiting.is_empty() {
            return None;
        }
        let measure = &self.measure;
        let known = self.typical.sums(measure, now, backends);
        let typical = measure.typical(now, &known);
        let eligible = self.waiting.iter().filter(|id| backends.is_eligible(**id));
        let waiting = eligible.filter_map(|id| backends.get(*id));
        least(waiting, |b| Rank::of_load(measure.load(b, typical)))
    }

    /// The best of all by the ranking; `None` if that alone cannot tell.
    fn ranked(&mut self, now: Time, backends: &Backends, rng: &mut Rng) -> Option<BackendId> {
        let ranked = self.ranking.least().map(|(rank, _)| rank);
        if ranked != Some(Rank::FIRST)
            && let Some(best) = self.least_of_waiting(now, backends)
            && ranked.is_none_or(|rank| best.key <= rank)
        {
            let is_alone = best.count == 1 && ranked.is_none_or(|rank| best.key < rank);
            return is_alone.then_some(best.first);
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
            let picked = self.ranked(now, backends, rng);
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
        self.typical.rebuild(measure, now, backends);
        let rank = |b: &Backend| Self::own_rank(measure, now, b);
        let keyed = |b: &Backend| (rank(b), measure.known_until(now, b));
        self.ranking.rebuild(backends, keyed);
        self.waiting.clear();
        if self.ranking.is_kept() {
            let waits = |b: &&Backend| rank(b) == Rank::LAST;
            let ids = backends.available().filter(waits).map(|b| b.id);
            self.waiting.extend(ids);
        }
    }
}

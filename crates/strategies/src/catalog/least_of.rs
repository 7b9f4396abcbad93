//! The least of one measure: every strategy that is nothing more than what it measures.

use crate::backends::{Backend, Backends};
use crate::choose::{Credits, Ranking, Ties, one_of_least_eligible};
use crate::measure::Measure;
use crate::registry::Context;
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::report::Report;

/// Picks the eligible backend whose key is least; ties random.
#[derive(Debug, Clone)]
pub(super) struct LeastOf<M: Measure> {
    measure: M,
    ranking: Ranking<M::Key>,
    credits: Credits,
}

impl<M: Measure> LeastOf<M> {
    pub(super) fn new(measure: M, context: &Context) -> Self {
        Self {
            measure,
            ranking: Ranking::above(context.few),
            credits: Credits::default(),
        }
    }

    fn rekey(&mut self, now: Time, id: BackendId, backends: &Backends) {
        let measure = &self.measure;
        let keyed = |b: &Backend| (measure.key(now, b), measure.holds_until(now, b));
        self.ranking.rekey(backends, id, keyed);
    }
}

impl<M: Measure> Strategy for LeastOf<M> {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let credits = &mut self.credits;
        if !self.ranking.is_kept() {
            let key = |b: &Backend| self.measure.key(now, b);
            return one_of_least_eligible(backends, Ties::Random, credits, rng, key);
        }
        while let Some(id) = self.ranking.due(now, backends) {
            self.rekey(now, id, backends);
        }
        let credits = &mut self.credits;
        self.ranking.pick(backends, Ties::Random, credits, rng)
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

    fn on_response(&mut self, now: Time, id: BackendId, _outcome: &Outcome, backends: &Backends) {
        self.rekey(now, id, backends);
    }

    fn on_stats(&mut self, now: Time, id: BackendId, _report: &Report, backends: &Backends) {
        self.rekey(now, id, backends);
    }

    fn on_backends_changed(&mut self, now: Time, backends: &Backends) {
        let measure = &self.measure;
        self.ranking.rebuild(backends, |b| {
            (measure.key(now, b), measure.holds_until(now, b))
        });
    }
}

//! The least predicted latency with live counts: polled ones corrected by own sends and answers.
//!
//! Among backends whose cost is within the tie band of the least, the fewest requests for its cores:
//! differences that small are the model's noise. `marginal` adds what the request costs the others.
//! Needs a model trained on live counts at mixed loads. Cost O(n) look-ups. Source: ours, after the
//! outlook of Eng. Proc. 2026, 122(1), 26.

use super::latency_model::{Asked, LIVE, MODEL};
use crate::backends::{Backend, Backends};
use crate::choose;
use crate::measure::{MAX_AGE, Rank, max_age_ns};
use crate::registry::{Context, Entry, Group, Kind, Parameter, Read, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::report::{Report, Source};

/// Parameters of both strategies with live counts.
pub(super) const PARAMETERS: &[Parameter] = &[
    MODEL,
    Parameter {
        name: "tie-band",
        kind: Kind::Decimal { min: 0.0, max: 1.0 },
        or: &[],
        default: "0.1",
        summary: "part above the least cost that counts as equal",
    },
    Parameter {
        name: "marginal",
        kind: Kind::Decimal { min: 0.0, max: 1.0 },
        or: &[],
        default: "0",
        summary: "part of the delay of the others that is counted",
    },
    MAX_AGE,
];

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: PARAMETERS,
    reads: &[Read::Poll, Read::InFlight, Read::Model],
    randomized: |_| true,
    model: Some(LIVE),
    known_flaws: &["T13"],
    ..Entry::new(
        "plb-live",
        Group::Predictive,
        "the least predicted latency with counts kept live between polls",
        |spec, context| Box::new(Live::new(spec, context, false)),
    )
};

/// Least cost within a tie band, from live counts.
#[derive(Debug, Clone)]
pub(super) struct Live {
    asked: Asked,
    piggyback: bool,
    tie_band: f64,
    marginal: f64,
    max_age_ns: u64,
    costs: Vec<(BackendId, f64, f64)>,
    ranks: Vec<(BackendId, Rank)>,
}

impl Live {
    pub(super) fn new(spec: &Spec, context: &Context, piggyback: bool) -> Self {
        Self {
            asked: Asked::new(spec, context, &LIVE),
            piggyback,
            tie_band: spec.decimal("tie-band").unwrap_or(0.1),
            marginal: spec.decimal("marginal").unwrap_or(0.0),
            max_age_ns: max_age_ns(spec, context),
            costs: Vec::new(),
            ranks: Vec::new(),
        }
    }

    /// The newest report this strategy may read.
    fn report<'a>(&self, backend: &'a Backend) -> Option<&'a Report> {
        let piggyback = backend.report(Source::Piggyback).filter(|_| self.piggyback);
        [backend.newest_stats(), piggyback]
            .into_iter()
            .flatten()
            .max_by_key(|r| r.sampled_at_ns)
    }

    /// Requests at a backend now, and the mean latency it last told, ms.
    fn inputs(&self, now: Time, backend: &Backend) -> (u64, f64) {
        let own = u64::from(backend.in_flight);
        let Some(report) = self.report(backend) else {
            return (own, 0.0);
        };
        let mean_ms = report.mean_latency_50_ms.unwrap_or(0.0);
        let age_ns = now.since_ns(Time::from_nanos(report.sampled_at_ns));
        let others = report
            .active
            .filter(|_| age_ns <= self.max_age_ns)
            .map_or(0, |active| active.saturating_sub(report.in_flight_before));
        (own + u64::from(others), mean_ms)
    }
}

impl Strategy for Live {
    fn pick(
        &mut self,
        now: Time,
        request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let api = self.asked.api(request);
        let mut costs = std::mem::take(&mut self.costs);
        costs.clear();
        for backend in backends.eligible() {
            let (active, mean_ms) = self.inputs(now, backend);
            let (first, second) = (self.asked.count_bin(active), self.asked.second_bin(mean_ms));
            let mut cost = self.asked.predict(api, backend.id, first, second);
            if self.marginal > 0.0 {
                let next = self.asked.count_bin(active + 1);
                let growth = self.asked.growth(backend.id, first, next, second);
                cost += self.marginal * active as f64 * growth;
            }
            costs.push((backend.id, cost, (active as f64 + 1.0) / backend.cores));
        }
        let least = costs.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
        // A prediction below zero has no band.
        let bound = least.max(least * (1.0 + self.tie_band));
        let among = || costs.iter().filter(|c| c.1 <= bound);
        self.ranks.clear();
        self.ranks
            .extend(among().map(|c| (c.0, Rank::of_load(c.2))));
        self.costs = costs;
        choose::one_of_least_keyed(&self.ranks, rng)
    }

    fn predicted_ms(&self, backend: BackendId) -> Option<f64> {
        self.asked.predicted_ms(backend)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.asked.on_backends_changed(backends);
        self.costs.reserve(backends.ids_len());
        self.ranks.reserve(backends.ids_len());
    }
}

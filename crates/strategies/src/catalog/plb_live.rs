//! The least predicted latency with live counts: polled ones corrected by own sends and answers.
//!
//! Among backends whose cost is within the tie band of the least, the fewest requests for its cores:
//! differences that small are the model's noise. `marginal` adds what the request costs the others.
//! Needs a model trained on live counts at mixed loads. Cost O(n) look-ups. Source: ours, after the
//! outlook of Eng. Proc. 2026, 122(1), 26.

use super::latency_model::{Asked, LIVE, MODEL, count_bin};
use crate::backends::{Backend, Backends};
use crate::choose;
use crate::measure::{ById, MAX_AGE, Rank, max_age_ns};
use crate::registry::{Context, Entry, Group, Kind, Parameter, Read, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use predictor::Column;
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
    /// Of all members.
    heard: ById<Option<Heard>>,
    /// Of the newest pick, in position order.
    costs: Vec<Cost>,
}

/// What counts of a backend's newest report; nothing at all without one.
#[derive(Debug, Clone, Copy)]
struct Heard {
    at: Time,
    /// Requests of other balancers.
    others: u32,
    /// Of its container and mean latency.
    column: Column,
}

/// What a backend's part in a pick comes to.
#[derive(Debug, Clone, Copy)]
struct Cost {
    id: BackendId,
    active: u64,
    /// Predicted.
    ms: f64,
    cost: f64,
}

impl Live {
    pub(super) fn new(spec: &Spec, context: &Context, piggyback: bool) -> Self {
        Self {
            asked: Asked::new(spec, context, &LIVE),
            piggyback,
            tie_band: spec.decimal("tie-band").unwrap_or(0.1),
            marginal: spec.decimal("marginal").unwrap_or(0.0),
            max_age_ns: max_age_ns(spec, context),
            heard: ById::default(),
            costs: Vec::new(),
        }
    }

    /// Takes in the newest report this strategy may read.
    fn hear(&mut self, backend: &Backend) {
        let Some(container) = self.asked.container(backend.id) else {
            return;
        };
        let piggyback = backend.report(Source::Piggyback).filter(|_| self.piggyback);
        let newest = [backend.newest_stats(), piggyback]
            .into_iter()
            .flatten()
            .max_by_key(|r| r.sampled_at_ns);
        let table = self.asked.table();
        let others = |report: &Report| Some(report.active?.saturating_sub(report.in_flight_before));
        let mean_ms = newest.and_then(|report| report.mean_latency_50_ms);
        let mean = table.second_bin(mean_ms.unwrap_or(0.0) as f32);
        *self.heard.of(backend.id) = Some(Heard {
            at: newest.map_or(Time::ZERO, |r| Time::from_nanos(r.sampled_at_ns)),
            others: newest.and_then(others).unwrap_or(0),
            column: table.column(container, mean),
        });
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
        let table = self.asked.table();
        let (of_api, of_all) = (table.predictions(api), table.predictions(table.mean_api()));
        self.costs.clear();
        let mut least = f64::INFINITY;
        for backend in backends.eligible() {
            let id = backend.id;
            let Some(Some(heard)) = self.heard.get(id) else {
                continue;
            };
            let is_young = now.since_ns(heard.at) <= self.max_age_ns;
            let others = if is_young { heard.others } else { 0 };
            let active = u64::from(backend.in_flight) + u64::from(others);
            let place = table.place_in(heard.column, count_bin(table, active));
            let ms = of_api.at(place);
            let mut cost = ms;
            if self.marginal > 0.0 {
                let next = table.place_in(heard.column, count_bin(table, active + 1));
                let growth = (of_all.at(next) - of_all.at(place)).max(0.0);
                cost += self.marginal * active as f64 * growth;
            }
            least = if cost < least { cost } else { least };
            self.costs.push(Cost {
                id,
                active,
                ms,
                cost,
            });
        }
        // A prediction below zero has no band.
        let bound = least.max(least * (1.0 + self.tie_band));
        let among = self.costs.iter().filter(|c| c.cost <= bound);
        let keyed = among.filter_map(|c| {
            let cores = backends.get(c.id)?.cores;
            Some((c.id, Rank::of_load((c.active as f64 + 1.0) / cores)))
        });
        choose::one_of_least_keyed(keyed, rng)
    }

    fn predicted_ms(&self, backend: BackendId) -> Option<f64> {
        let at = self.costs.binary_search_by_key(&backend, |c| c.id).ok()?;
        Some(self.costs[at].ms)
    }

    fn on_stats(&mut self, _now: Time, id: BackendId, _report: &Report, backends: &Backends) {
        if let Some(backend) = backends.get(id) {
            self.hear(backend);
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.asked.on_backends_changed(backends);
        self.heard.make_room(backends);
        backends.members().for_each(|backend| self.hear(backend));
        self.costs.reserve(backends.ids_len());
    }
}

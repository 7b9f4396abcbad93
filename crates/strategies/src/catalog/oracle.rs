//! What both oracles share: the decision of `wl-mc` with the true need of every job.

use crate::backends::{Backend, Backends};
use crate::choose;
use crate::measure::{ById, Rank};
use crate::registry::{Entry, Group, Kind, Parameter, Read, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use crate::work_left::jobs::{Job, Jobs};
use crate::work_left::placing::CROWD_MS;
use crate::work_left::price::{DISCIPLINE, Price, serves_in_order};
use schema::report::{Report, Source};

/// The parameters of both.
pub(super) const PARAMETERS: &[Parameter] = &[
    DISCIPLINE,
    Parameter {
        name: "truth",
        kind: Kind::Word(&["own", "world"]),
        or: &[],
        default: "own",
        summary: "the needs of own jobs, or (simulation only) the true work left everywhere",
    },
    Parameter {
        name: "look-ahead",
        kind: Kind::Decimal { min: 0.0, max: 1.0 },
        or: &[],
        default: "0",
        summary: "part of the time on an idle backend that is not counted",
    },
];

/// An oracle's entry.
pub(super) const fn entry(name: &'static str, summary: &'static str, marginal: bool) -> Entry {
    Entry {
        parameters: PARAMETERS,
        reads: &[Read::Cost, Read::InFlight],
        randomized: |_| true,
        needs_cost: true,
        known_flaws: &["T13"],
        ..Entry::new(
            name,
            Group::Oracle,
            summary,
            if marginal {
                |spec, context| Box::new(Oracle::new(spec, context.mi_per_ms, true))
            } else {
                |spec, context| Box::new(Oracle::new(spec, context.mi_per_ms, false))
            },
        )
    }
}

#[derive(Debug, Clone)]
struct State {
    price: Price,
    jobs: Jobs,
    speed: f64,
}

#[derive(Debug, Clone)]
struct Oracle {
    in_order: bool,
    marginal: bool,
    world: bool,
    look_ahead: f64,
    mi_per_ms: f64,
    state: ById<Option<Box<State>>>,
    ranks: Vec<(BackendId, Rank)>,
}

impl Oracle {
    fn new(spec: &Spec, mi_per_ms: f64, marginal: bool) -> Self {
        Self {
            in_order: serves_in_order(spec),
            marginal,
            world: spec.is("truth", "world"),
            look_ahead: spec.decimal("look-ahead").unwrap_or(0.0),
            mi_per_ms,
            state: ById::default(),
            ranks: Vec::new(),
        }
    }

    fn at(&mut self, now: Time, backend: &Backend) -> &mut State {
        let in_order = self.in_order;
        let state = self.state.of(backend.id).get_or_insert_with(|| {
            Box::new(State {
                price: Price::new(backend.cores, in_order),
                jobs: Jobs::default(),
                speed: 1.0,
            })
        });
        let discipline = state.price.discipline();
        state.jobs.advance(now, backend.cores, 0.0, discipline);
        state
    }

    fn size_ms(&self, request: &Request<'_>) -> Option<f64> {
        let size_ms = request.cost_mi? / self.mi_per_ms;
        (size_ms.is_finite() && size_ms >= 0.0).then_some(size_ms)
    }

    fn cost(&mut self, now: Time, backend: &Backend, size_ms: f64) -> f64 {
        let (marginal, look_ahead, world) = (self.marginal, self.look_ahead, self.world);
        let State { price, jobs, speed } = self.at(now, backend);
        // The twin tells the whole truth right before each pick; without it own jobs must do.
        let truth = backend
            .report(Source::Probe)
            .filter(|_| world)
            .and_then(|r| r.work_left.as_deref());
        let (cost, present) = match truth {
            Some(all) => (
                price.cost(size_ms, all.iter().map(|j| j.core_ms.max(0.0))),
                all.len(),
            ),
            None => {
                let left = |job: &Job| (job.size_ms - jobs.attained(job).nominal_ms).max(0.0);
                (price.cost(size_ms, jobs.iter().map(left)), jobs.len())
            }
        };
        let cores = backend.cores;
        let mut sum_ms = cost.own_ms + CROWD_MS * (present as f64 + 1.0) / cores;
        if marginal {
            let discount = match price {
                Price::Sharing(_) => look_ahead * size_ms * (1.0 / cores).max(1.0),
                Price::Queue(_) => 0.0,
            };
            sum_ms += cost.others_ms - discount;
        }
        sum_ms / if world { *speed } else { 1.0 }
    }
}

impl Strategy for Oracle {
    fn pick(
        &mut self,
        now: Time,
        request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let size_ms = self.size_ms(request);
        let mut ranks = std::mem::take(&mut self.ranks);
        ranks.clear();
        for backend in backends.eligible() {
            let cost = match size_ms {
                Some(size_ms) => self.cost(now, backend, size_ms),
                None => (f64::from(backend.in_flight) + 1.0) / backend.cores,
            };
            ranks.push((backend.id, Rank::of_load(cost)));
        }
        self.ranks = ranks;
        choose::one_of_least_keyed(self.ranks.iter().copied(), rng)
    }

    fn on_dispatch(
        &mut self,
        now: Time,
        id: BackendId,
        request: &Request<'_>,
        backends: &Backends,
    ) {
        let size_ms = self.size_ms(request).unwrap_or(0.0);
        if let Some(backend) = backends.get(id) {
            let state = self.at(now, backend);
            let discipline = state.price.discipline();
            state.jobs.push(
                backends.newest_dispatch(),
                0,
                request.class,
                size_ms,
                discipline,
            );
        }
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, backends: &Backends) {
        if let Some(backend) = backends.get(id) {
            let state = self.at(now, backend);
            let discipline = state.price.discipline();
            state.jobs.remove(outcome.dispatch, discipline);
        }
    }

    fn on_stats(&mut self, now: Time, id: BackendId, report: &Report, backends: &Backends) {
        if let (true, Source::Probe, Some(backend), Some(speed)) =
            (self.world, report.source, backends.get(id), report.speed)
        {
            // A stopped backend is not free of charge.
            self.at(now, backend).speed = if speed.is_finite() {
                speed.max(1e-6)
            } else {
                1.0
            };
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.state.make_room(backends);
        for backend in backends.members() {
            if let Some(state) = self.state.of(backend.id).as_deref_mut()
                && state.price.cores() != backend.cores
            {
                state.price = Price::new(backend.cores, self.in_order);
                state.jobs.start(state.price.discipline());
            }
        }
    }
}

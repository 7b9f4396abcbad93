//! Work left, marginal cost, with look-ahead.
//!
//! It learns what a class of requests needs and keeps, per backend, how much of each own job is done.
//! From the work left it computes how long the new request would take there and how much it would
//! delay the others, discounts the time it needs on an idle backend, and takes the least sum. Cost
//! O(in_flight) per backend. Not with a wrong `discipline`, nor where backends fail fast (use
//! ejection). Source: ours, after the outlook of the predictive balancer it is compared with.

use crate::backends::{Backend, Backends};
use crate::choose;
use crate::measure::{ById, Rank};
use crate::registry::{Context, Entry, Group, Kind, Parameter, Read, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use crate::work_left::backlog::{Backlog, Reading, Reports, request_key};
use crate::work_left::company::Company;
use crate::work_left::demand::Demand;
use crate::work_left::jobs::Job;
use crate::work_left::left::{Left, Needs, lefts};
use crate::work_left::load::Load;
use crate::work_left::placing::{LOOK_AHEAD, OBJECTIVE, Place, Placing};
use crate::work_left::price::{DISCIPLINE, Price, serves_in_order};
use crate::work_left::speed::{Rule, Sample, Speed};
use schema::event::Status;
use schema::report::Report;

/// The parameters.
pub(super) const PARAMETERS: &[Parameter] = &[
    DISCIPLINE,
    OBJECTIVE,
    LOOK_AHEAD,
    Parameter {
        name: "demand-gain",
        kind: Kind::Decimal {
            min: 0.001,
            max: 1.0,
        },
        or: &[],
        default: "0.02",
        summary: "weight of the newest completion in the mean need of its class",
    },
    Parameter {
        name: "speed",
        kind: Kind::Word(&["off", "ewma", "filter", "reported"]),
        or: &[],
        default: "ewma",
        summary: "how the speed of a backend is told",
    },
    Parameter {
        name: "speed-decay",
        kind: Kind::Duration {
            min_ns: 1_000_000_000,
            max_ns: 600_000_000_000,
        },
        or: &[],
        default: "30s",
        summary: "time constant with which a speed returns to nominal",
    },
    Parameter {
        name: "reports",
        kind: Kind::Word(&["off", "counts", "work"]),
        or: &[],
        default: "off",
        summary: "what of the workers' reports is read: nothing, counts, or (worker-told) work left",
    },
];
/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: PARAMETERS,
    reads: &[
        Read::InFlight,
        Read::Latency,
        Read::Status,
        Read::Poll,
        Read::Piggyback,
        Read::Probe,
    ],
    randomized: |_| true,
    known_flaws: &["T13"],
    ..Entry::new(
        "wl-mc",
        Group::Predictive,
        "the least added delay for all, from the work left of own jobs",
        |spec, context| Box::new(WlMc::new(spec, context)),
    )
};

#[derive(Debug, Clone)]
struct State {
    price: Price,
    backlog: Backlog,
    speed: Speed,
}

/// What is the same for every backend in a pick.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// What requests need.
    pub(super) needs: Needs,
    /// Requests that would wait in one line for all cores.
    pressure: f64,
}

#[derive(Debug, Clone)]
pub(super) struct WlMc {
    in_order: bool,
    placing: Placing,
    rule: Rule,
    decay_ns: f64,
    reading: Reading,
    demand: Demand,
    load: Load,
    /// At all backends.
    company: Company,
    state: ById<Option<Box<State>>>,
    ranks: Vec<(BackendId, Rank)>,
}

impl WlMc {
    pub(super) fn new(spec: &Spec, context: &Context) -> Self {
        let rule = match () {
            () if spec.is("speed", "off") => Rule::Off,
            () if spec.is("speed", "filter") => Rule::Filter,
            () if spec.is("speed", "reported") => Rule::Reported,
            () => Rule::Ewma,
        };
        let reports = match () {
            () if spec.is("reports", "counts") => Reports::Counts,
            () if spec.is("reports", "work") => Reports::Work,
            () => Reports::Off,
        };
        Self {
            in_order: serves_in_order(spec),
            placing: Placing::new(spec),
            rule,
            decay_ns: spec.duration_ns("speed-decay").unwrap_or(30_000_000_000) as f64,
            reading: Reading {
                reports,
                max_age_ns: context.poll_interval_ns.saturating_mul(3),
            },
            demand: Demand::new(spec.decimal("demand-gain").unwrap_or(0.02)),
            load: Load::default(),
            company: Company::default(),
            state: ById::default(),
            ranks: Vec::new(),
        }
    }

    /// A backend's state with its clocks at `now`; how fast a job ran since they were last moved.
    fn at(&mut self, now: Time, backend: &Backend) -> (&mut State, f64) {
        let (in_order, reading) = (self.in_order, self.reading);
        let state = self.state.of(backend.id).get_or_insert_with(|| {
            Box::new(State {
                price: Price::new(backend.cores, in_order),
                backlog: Backlog::default(),
                speed: Speed::default(),
            })
        });
        let rate = state
            .backlog
            .advance(now, backend, state.price.discipline(), reading);
        (state, rate)
    }

    /// How many requests would wait at this load if all cores served one line; 0 where only a part of the
    /// load is known (several balancers), and without queues, whose price alone asks for it. A core that runs
    /// at half its speed is half a core.
    fn pressure(&mut self, backends: &Backends) -> f64 {
        if !self.in_order || self.company.is_there() {
            return 0.0;
        }
        let (mut cores, mut capacity) = (0.0, 0.0);
        for backend in backends.eligible() {
            let state = self.state.of(backend.id).as_deref();
            cores += backend.cores;
            capacity += backend.cores * state.map_or(1.0, |s| s.backlog.jobs.speed);
        }
        self.load.waiting(cores, capacity)
    }

    fn cost(&mut self, backend: &Backend, size_ms: f64, known: Known) -> f64 {
        let (placing, demand) = (self.placing, &self.demand);
        let Some(State { price, backlog, .. }) = self.state.of(backend.id).as_deref_mut() else {
            return f64::INFINITY;
        };
        let place = place(backend, backlog, known);
        let left_ms = lefts(backlog, price.discipline(), demand, known.needs).map(Left::ms);
        placing.cost_ms(place, price, known.needs, size_ms, left_ms)
    }

    /// What is known of a backend in this pick.
    pub(super) fn station(
        &self,
        backend: &Backend,
        known: Known,
    ) -> Option<(Place, &Price, impl Iterator<Item = Left>)> {
        let State { price, backlog, .. } = self.state.get(backend.id)?.as_deref()?;
        let lefts = lefts(backlog, price.discipline(), &self.demand, known.needs);
        Some((place(backend, backlog, known), price, lefts))
    }

    /// The eligible backends with their costs, as of the newest choice.
    pub(super) fn ranks(&self) -> &[(BackendId, Rank)] {
        &self.ranks
    }

    /// Whether all requests are own ones, or nearly, and every eligible backend runs at nominal speed, as
    /// far as known.
    pub(super) fn knows_all(&self, backends: &Backends) -> bool {
        let nominal = |b: &Backend| {
            let state = self.state.get(b.id).and_then(|s| s.as_deref());
            state.is_none_or(|s| s.backlog.jobs.speed == 1.0)
        };
        !self.company.is_there() && backends.eligible().all(nominal)
    }

    /// What requests need.
    pub(super) fn demand(&self) -> &Demand {
        &self.demand
    }

    /// What of a placement counts.
    pub(super) fn placing(&self) -> Placing {
        self.placing
    }

    /// Moves all clocks to `now` and tells the speeds; `None` while no need is known.
    pub(super) fn observe(&mut self, now: Time, backends: &Backends) -> Option<Known> {
        for backend in backends.eligible() {
            self.at(now, backend);
        }
        let typical_ms = self.demand.typical()?;
        self.estimate_speeds(now, backends);
        Some(Known {
            needs: Needs {
                typical_ms,
                spread: self.demand.spread(),
            },
            pressure: self.pressure(backends),
        })
    }

    /// The backend of the least cost.
    pub(super) fn choose(
        &mut self,
        known: Option<Known>,
        request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let mut ranks = std::mem::take(&mut self.ranks);
        ranks.clear();
        for backend in backends.eligible() {
            let cost = match known {
                Some(known) => {
                    let size_ms = self.demand.of(request.class);
                    self.cost(backend, size_ms.unwrap_or(known.needs.typical_ms), known)
                }
                // Nothing is known yet: the fewest requests for its cores.
                None => {
                    let state = self.state.of(backend.id).as_deref();
                    (state.map_or(0.0, |s| s.backlog.present()) + 1.0) / backend.cores
                }
            };
            ranks.push((backend.id, Rank::of_load(cost)));
        }
        self.ranks = ranks;
        choose::one_of_least_keyed(self.ranks.iter().copied(), rng)
    }

    fn estimate_speeds(&mut self, now: Time, backends: &Backends) {
        let (rule, decay_ns, spread) = (self.rule, self.decay_ns, self.demand.spread());
        if rule == Rule::Off {
            return;
        }
        let (mut fastest, mut absolute): (f64, _) = (0.0, false);
        for backend in backends.eligible() {
            let demand = &self.demand;
            let Some(state) = self.state.of(backend.id).as_deref_mut() else {
                continue;
            };
            let jobs = &state.backlog.jobs;
            // What a job needs in all is no guess once its worker told it.
            let guessed = |j: &&Job| jobs.runs(j) && jobs.told_ms(j).is_none();
            let running = jobs.iter().filter(guessed).filter_map(|job| {
                Some(Sample {
                    mean_ms: demand.of(job.class)?,
                    count: demand.count(job.class),
                    spread,
                    attained_ms: jobs.attained(job).nominal_ms,
                })
            });
            let estimate = state.speed.estimate(rule, now, decay_ns, running);
            state.backlog.jobs.speed = estimate;
            absolute |= state.speed.is_measured(now, decay_ns);
            fastest = fastest.max(estimate);
        }
        if absolute {
            return;
        }
        for backend in backends.eligible() {
            if let Some(state) = self.state.of(backend.id).as_deref_mut() {
                state.backlog.jobs.speed /= fastest;
            }
        }
    }
}

/// Where a request may be placed.
fn place(backend: &Backend, backlog: &Backlog, known: Known) -> Place {
    Place {
        cores: backend.cores,
        speed: backlog.jobs.speed,
        present: backlog.present(),
        pressure: known.pressure,
    }
}

impl Strategy for WlMc {
    fn pick(
        &mut self,
        now: Time,
        request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let known = self.observe(now, backends);
        self.choose(known, request, backends, rng)
    }

    fn on_dispatch(
        &mut self,
        now: Time,
        id: BackendId,
        request: &Request<'_>,
        backends: &Backends,
    ) {
        let Some(backend) = backends.get(id) else {
            return;
        };
        let key = request_key(self.reading, request.id);
        let (state, _) = self.at(now, backend);
        let discipline = state.price.discipline();
        state.backlog.jobs.push(
            backends.newest_dispatch(),
            key,
            request.class,
            0.0,
            discipline,
        );
        self.at(now, backend);
        let need_ms = self.demand.of(request.class);
        self.load
            .note(now, need_ms.or_else(|| self.demand.typical()));
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, backends: &Backends) {
        let Some(backend) = backends.get(id) else {
            return;
        };
        let (rule, decay_ns, in_order) = (self.rule, self.decay_ns, self.in_order);
        let (state, _) = self.at(now, backend);
        let discipline = state.price.discipline();
        let Some((job, attained)) = state.backlog.jobs.remove(outcome.dispatch, discipline) else {
            return;
        };
        state.backlog.forget(&job);
        let speed = state.backlog.jobs.speed;
        self.at(now, backend);
        // A job that is done although others seemed to be before it tells nothing of its need.
        if outcome.status != Status::Ok || attained.nominal_ms <= 0.0 {
            return;
        }
        let at_speed_ms = attained.nominal_ms * speed;
        let steady = (attained.effective_ms - at_speed_ms).abs() < 0.1 * attained.effective_ms;
        let need_ms = if in_order || steady {
            at_speed_ms
        } else {
            attained.effective_ms
        };
        let class = job.class;
        self.demand.learn_spread(class, need_ms);
        if let Some(mean_ms) = self.demand.of(class) {
            let sample = Sample {
                mean_ms,
                count: self.demand.count(class),
                spread: self.demand.spread(),
                attained_ms: attained.nominal_ms,
            };
            if let Some(state) = self.state.of(id).as_deref_mut() {
                state.speed.learn(rule, now, decay_ns, sample);
            }
        }
        self.demand.learn_mean(class, need_ms);
    }

    fn on_stats(&mut self, now: Time, id: BackendId, report: &Report, backends: &Backends) {
        let Some(backend) = backends.get(id) else {
            return;
        };
        let (work, off) = match self.reading.reports {
            Reports::Work => (true, false),
            Reports::Counts => (false, false),
            Reports::Off => (false, true),
        };
        let (rule, decay_ns) = (self.rule, self.decay_ns);
        let held = report.active.map(|active| {
            let others = active.saturating_sub(report.in_flight_before);
            (active, others)
        });
        if let Some((active, others)) = held {
            self.company.note(active, others);
        }
        let (state, rate) = self.at(now, backend);
        if let (true, Some((active, others))) = (off, held) {
            state.speed.note_company(active, others);
        }
        if let Some(speed) = report.speed {
            state.speed.report(speed);
        }
        if work {
            let discipline = state.price.discipline();
            let way = state.backlog.tell(now, report, rate, discipline);
            let way = way.unwrap_or_default();
            state.speed.measure(rule, now, decay_ns, way);
        }
        self.at(now, backend);
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.state.make_room(backends);
        for backend in backends.members() {
            if let Some(state) = self.state.of(backend.id)
                && state.price.cores() != backend.cores
            {
                state.price = Price::new(backend.cores, self.in_order);
                state.backlog.jobs.start(state.price.discipline());
            }
        }
    }
}

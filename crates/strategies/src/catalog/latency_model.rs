//! What the predictive strategies share: a latency model asked per class and backend.

use crate::backends::{Backend, Backends};
use crate::classes::MAX_CLASSES;
use crate::measure::{self, ById};
use crate::registry::{Context, Kind, Parameter, Spec, Wanted};
use crate::time::Time;
use crate::values::{BackendId, Request};
use predictor::{Api, Bin, Container, Features, LatencyTable, Statistics};
use schema::report::{Report, Source};
use std::sync::Arc;

/// The parameter `model`.
pub(super) const MODEL: Parameter = Parameter {
    name: "model",
    kind: Kind::ModelName,
    or: &[],
    default: "the first that fits",
    summary: "name of the latency model to ask",
};

/// A model of polled counts and mean latencies.
pub(super) const POLLED: Wanted = Wanted {
    features: Features::ActiveMean50,
    statistics: &[Statistics::Polled],
};

/// A model of live counts.
pub(super) const LIVE: Wanted = Wanted {
    features: Features::ActiveMean50,
    statistics: &[Statistics::Live, Statistics::Piggyback],
};

/// A model of the engine's CPU and memory figures.
pub(super) const DOCKER: Wanted = Wanted {
    features: Features::CpuMemory,
    statistics: &[Statistics::Docker],
};

/// A model, with what was looked up once: the API of a class, the container of a backend.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    table: Arc<LatencyTable>,
    apis: Vec<Option<Api>>,
    containers: ById<Option<Container>>,
    predicted: ById<Option<f64>>,
}

impl Asked {
    /// The model that `spec` asks for.
    ///
    /// # Panics
    /// If it is not loaded: a spec is checked before it is built.
    pub(super) fn new(spec: &Spec, context: &Context, wanted: &Wanted) -> Self {
        let model = context.models.find(spec, wanted);
        Self {
            table: model.expect("a checked spec has its model").table.clone(),
            apis: Vec::new(),
            containers: ById::default(),
            predicted: ById::default(),
        }
    }

    /// Looks up the containers of new and changed backends.
    pub(super) fn on_backends_changed(&mut self, backends: &Backends) {
        self.containers.make_room(backends);
        self.predicted.make_room(backends);
        for b in backends.members() {
            let container = self.table.container(b.cores, b.memory_mib / 1024.0);
            *self.containers.of(b.id) = Some(container);
        }
    }

    /// The API of a request.
    pub(super) fn api(&mut self, request: &Request<'_>) -> Api {
        let index = request.class as usize;
        // Beyond the limit many APIs share one class.
        if request.class >= MAX_CLASSES - 1 {
            return self.table.api(request.method, request.url);
        }
        if index >= self.apis.len() {
            self.apis.resize(index + 1, None);
        }
        let table = &self.table;
        *self.apis[index].get_or_insert_with(|| table.api(request.method, request.url))
    }

    /// The bin of a value of the first input.
    pub(super) fn first_bin(&self, x: f64) -> Bin {
        self.table.first_bin(x as f32)
    }

    /// The bin of a value of the second input.
    pub(super) fn second_bin(&self, x: f64) -> Bin {
        self.table.second_bin(x as f32)
    }

    /// The bin of a count of requests.
    pub(super) fn count_bin(&self, count: u64) -> Bin {
        self.table
            .count_bin(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Predicted latency of a request on a backend, ms; remembered until the next time.
    pub(super) fn predict(&mut self, api: Api, id: BackendId, first: Bin, second: Bin) -> f64 {
        let ms = match self.containers.get(id) {
            Some(Some(container)) => self.table.predict(api, *container, first, second),
            _ => f64::INFINITY,
        };
        *self.predicted.of(id) = Some(ms);
        ms
    }

    /// By how much the mean prediction over the known APIs grows from `first` to `next`, ms; never
    /// below zero.
    pub(super) fn growth(&self, id: BackendId, first: Bin, next: Bin, second: Bin) -> f64 {
        let Some(Some(container)) = self.containers.get(id) else {
            return 0.0;
        };
        let all = self.table.mean_api();
        let more = self.table.predict(all, *container, next, second);
        (more - self.table.predict(all, *container, first, second)).max(0.0)
    }

    /// Nothing is predicted for a backend this time.
    fn forget(&mut self, id: BackendId) {
        *self.predicted.of(id) = None;
    }

    /// What was predicted last for a backend, ms.
    pub(super) fn predicted_ms(&self, id: BackendId) -> Option<f64> {
        *self.predicted.get(id)?
    }
}

/// The parameter `max-age` of those who look at nothing but reports.
pub(super) const MAX_AGE: Parameter = Parameter {
    default: "10s or 3 poll intervals",
    ..measure::MAX_AGE
};
/// Until a report is this old it is believed, at the least: what the paper reads has no age.
const BELIEVED_NS: u64 = 10_000_000_000;
/// No container uses more than this many times its cores, whatever two samples differ by.
const MOST_OF_CORES: f64 = 2.0;

/// The reports of one source: the two inputs of each backend as of its newest, as bins.
///
/// A report without the inputs, or with figures that cannot be (a feed that changed its unit), is passed
/// over. A backend without one that is young enough cannot be compared with others: whoever stands
/// before such a choice picks by its own counts instead, see [`Seen::stand_in`].
#[derive(Debug, Clone)]
pub(super) struct Seen {
    source: Source,
    max_age_ns: u64,
    told: ById<Option<Told>>,
    stand_ins: u64,
}

#[derive(Debug, Clone, Copy)]
struct Told {
    at: Time,
    bins: (Bin, Bin),
}

impl Seen {
    /// Of reports from `source`.
    pub(super) fn new(spec: &Spec, context: &Context, source: Source) -> Self {
        let by_default = || BELIEVED_NS.max(measure::max_age_ns(spec, context));
        Self {
            source,
            max_age_ns: spec.duration_ns("max-age").unwrap_or_else(by_default),
            told: ById::default(),
            stand_ins: 0,
        }
    }

    /// Takes a report, if it is one of its source and to be believed.
    pub(super) fn take(&mut self, asked: &Asked, id: BackendId, report: &Report, all: &Backends) {
        let Some(backend) = all.get(id).filter(|_| report.source == self.source) else {
            return;
        };
        let inputs = match self.source {
            Source::Docker => cpu_and_memory(report, backend),
            _ => active_and_mean(report),
        };
        if let Some((first, second)) = inputs {
            *self.told.of(id) = Some(Told {
                at: Time::from_nanos(report.sampled_at_ns),
                bins: (asked.first_bin(first), asked.second_bin(second)),
            });
        }
    }

    /// Whether one of `candidates` has no report that is young enough.
    pub(super) fn lacks<'a>(
        &self,
        now: Time,
        mut candidates: impl Iterator<Item = &'a Backend>,
    ) -> bool {
        let is_young = |told: Told| now.since_ns(told.at) <= self.max_age_ns;
        !candidates.all(|b| self.told.get(b.id).copied().flatten().is_some_and(is_young))
    }

    /// The one with the fewest own requests for its cores, first of equals: what is picked then.
    pub(super) fn stand_in<'a>(
        &mut self,
        asked: &mut Asked,
        candidates: impl Iterator<Item = &'a Backend>,
    ) -> Option<BackendId> {
        self.stand_ins += 1;
        let load = |b: &Backend| (f64::from(b.in_flight) + 1.0) / b.cores;
        candidates
            .inspect(|b| asked.forget(b.id))
            .min_by(|a, b| load(a).total_cmp(&load(b)))
            .map(|b| b.id)
    }

    /// How often [`Self::stand_in`] chose.
    pub(super) fn stand_ins(&self) -> u64 {
        self.stand_ins
    }

    /// The prediction for a request on a backend that is told of, ms.
    pub(super) fn predict(&self, asked: &mut Asked, api: Api, backend: &Backend) -> f64 {
        let told = self.told.get(backend.id).copied().flatten();
        told.map_or(f64::INFINITY, |told| {
            asked.predict(api, backend.id, told.bins.0, told.bins.1)
        })
    }
}

/// Counts and mean latency; of a worker without a response yet it is 0, as the model was trained.
fn active_and_mean(report: &Report) -> Option<(f64, f64)> {
    let mean_ms = report.mean_latency_50_ms.unwrap_or(0.0);
    Some((f64::from(report.active?), mean_ms))
}

/// CPU and memory in use, unless a container of this size cannot have used so much.
fn cpu_and_memory(report: &Report, backend: &Backend) -> Option<(f64, f64)> {
    let (cpu, memory) = (report.cpu_percent?, report.memory_used_mib?);
    let can_be = cpu <= MOST_OF_CORES * 100.0 * backend.cores
        && (memory <= backend.memory_mib || backend.memory_mib == 0.0);
    can_be.then_some((cpu, memory))
}

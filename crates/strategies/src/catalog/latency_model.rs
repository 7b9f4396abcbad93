//! What the predictive strategies share: a latency model asked per class and backend.

use crate::backends::{Backend, Backends};
use crate::classes::MAX_CLASSES;
use crate::measure::{self, ById};
use crate::registry::{Context, Kind, Parameter, Spec, Wanted};
use crate::time::Time;
use crate::values::{BackendId, Request};
use predictor::{Api, Bin, Container, Features, LatencyTable, Place, Statistics};
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
        }
    }

    /// Looks up the containers of new and changed backends.
    pub(super) fn on_backends_changed(&mut self, backends: &Backends) {
        self.containers.make_room(backends);
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

    /// The container of a backend that was a member at some time.
    pub(super) fn container(&self, id: BackendId) -> Option<Container> {
        *self.containers.get(id)?
    }

    /// The table itself.
    pub(super) fn table(&self) -> &LatencyTable {
        &self.table
    }
}

/// The bin of a count of requests.
pub(super) fn count_bin(table: &LatencyTable, count: u64) -> Bin {
    table.count_bin(u32::try_from(count).unwrap_or(u32::MAX))
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

/// A model asked of what reports of one source tell: the two inputs of each backend as of its newest.
///
/// A report without the inputs, or with figures that cannot be (a feed that changed its unit), is passed
/// over. A backend without one that is young enough cannot be compared with others: whoever stands
/// before such a choice picks by its own counts instead, see [`Seen::stand_in`].
#[derive(Debug, Clone)]
pub(super) struct Seen {
    asked: Asked,
    source: Source,
    max_age_ns: u64,
    told: ById<Option<Told>>,
    /// Until then no available backend's report is too old; of no account once the pool changes.
    young_until: Option<Time>,
    stand_ins: u64,
    /// The API of the newest pick, if it was made by predictions.
    newest: Option<Api>,
}

#[derive(Debug, Clone, Copy)]
struct Told {
    at: Time,
    bins: (Bin, Bin),
    place: Place,
}

impl Seen {
    /// The model `wanted`, asked of reports from `source`.
    pub(super) fn new(spec: &Spec, context: &Context, wanted: &Wanted, source: Source) -> Self {
        let by_default = || BELIEVED_NS.max(measure::max_age_ns(spec, context));
        Self {
            asked: Asked::new(spec, context, wanted),
            source,
            max_age_ns: spec.duration_ns("max-age").unwrap_or_else(by_default),
            told: ById::default(),
            young_until: None,
            stand_ins: 0,
            newest: None,
        }
    }

    /// Takes a report, if it is one of its source and to be believed.
    pub(super) fn take(&mut self, id: BackendId, report: &Report, all: &Backends) {
        let Some(backend) = all.get(id).filter(|_| report.source == self.source) else {
            return;
        };
        let inputs = match self.source {
            Source::Docker => cpu_and_memory(report, backend),
            _ => active_and_mean(report),
        };
        if let (Some((first, second)), Some(container)) = (inputs, self.asked.container(id)) {
            let table = self.asked.table();
            let bins = (
                table.first_bin(first as f32),
                table.second_bin(second as f32),
            );
            *self.told.of(id) = Some(Told {
                at: Time::from_nanos(report.sampled_at_ns),
                bins,
                place: table.place(container, bins.0, bins.1),
            });
        }
    }

    /// Takes what new members told before, and looks up the containers of new and changed ones.
    pub(super) fn on_backends_changed(&mut self, backends: &Backends) {
        self.asked.on_backends_changed(backends);
        self.told.make_room(backends);
        self.young_until = None;
        for backend in backends.members() {
            let (id, container) = (backend.id, self.asked.container(backend.id));
            if let (Some(told), Some(container)) = (self.told.of(id), container) {
                told.place = self
                    .asked
                    .table()
                    .place(container, told.bins.0, told.bins.1);
            }
            if let Some(report) = backend.report(self.source) {
                self.take(id, report, backends);
            }
        }
    }

    /// Whether one of the eligible has no report that is young enough; O(1) until one grows old.
    pub(super) fn lacks_any(&mut self, now: Time, backends: &Backends) -> bool {
        if self.young_until.is_some_and(|until| now <= until) {
            return false;
        }
        let until = self.young_until(backends.eligible());
        self.young_until = until.filter(|_| backends.nobody_left_out());
        until.is_none_or(|until| until < now)
    }

    /// Whether one of `candidates` has no report that is young enough.
    pub(super) fn lacks<'a>(
        &self,
        now: Time,
        candidates: impl Iterator<Item = &'a Backend>,
    ) -> bool {
        self.young_until(candidates).is_none_or(|until| until < now)
    }

    /// Until when all have a report that is young enough; `None` if one never told anything.
    fn young_until<'a>(&self, mut candidates: impl Iterator<Item = &'a Backend>) -> Option<Time> {
        candidates.try_fold(Time::MAX, |least, backend| {
            let told = self.told.get(backend.id).copied().flatten()?;
            Some(least.min(told.at.plus_ns(self.max_age_ns)))
        })
    }

    /// The one with the fewest own requests for its cores, first of equals: what is picked then.
    pub(super) fn stand_in<'a>(
        &mut self,
        candidates: impl Iterator<Item = &'a Backend>,
    ) -> Option<BackendId> {
        self.stand_ins += 1;
        self.newest = None;
        let load = |b: &Backend| (f64::from(b.in_flight) + 1.0) / b.cores;
        candidates
            .min_by(|a, b| load(a).total_cmp(&load(b)))
            .map(|b| b.id)
    }

    /// How often [`Self::stand_in`] chose.
    pub(super) fn stand_ins(&self) -> u64 {
        self.stand_ins
    }

    /// The predictions for a request, ms, by backend; infinite for one that told nothing.
    pub(super) fn predictions(&mut self, request: &Request<'_>) -> impl Fn(BackendId) -> f64 {
        let api = self.asked.api(request);
        self.newest = Some(api);
        let (told, predictions) = (&self.told, self.asked.table().predictions(api));
        move |id| match told.get(id) {
            Some(Some(told)) => predictions.at(told.place),
            _ => f64::INFINITY,
        }
    }

    /// What the newest pick predicted for a backend, ms; `None` if it was made by own counts.
    pub(super) fn predicted_ms(&self, id: BackendId) -> Option<f64> {
        let told = (*self.told.get(id)?)?;
        Some(self.asked.table().predictions(self.newest?).at(told.place))
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

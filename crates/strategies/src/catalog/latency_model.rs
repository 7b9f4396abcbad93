//! What the predictive strategies share: a latency model asked per class and backend.

use crate::backends::{Backend, Backends};
use crate::classes::MAX_CLASSES;
use crate::measure::ById;
use crate::registry::{Context, Kind, Parameter, Spec, Wanted};
use crate::values::{BackendId, Request};
use predictor::{Api, Bin, Container, Features, LatencyTable, Statistics};
use schema::report::Report;
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

    /// What was predicted last for a backend, ms.
    pub(super) fn predicted_ms(&self, id: BackendId) -> Option<f64> {
        *self.predicted.get(id)?
    }
}

/// The two inputs of one backend as of its newest report, as bins; of no report: those of 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(ById<Option<(Bin, Bin)>>);

impl Seen {
    /// Takes the inputs of a report: counts and mean latency, or CPU and memory.
    pub(super) fn take(&mut self, asked: &Asked, id: BackendId, inputs: (f64, f64)) {
        let bins = (asked.first_bin(inputs.0), asked.second_bin(inputs.1));
        *self.0.of(id) = Some(bins);
    }

    /// The prediction for a request on a backend, ms.
    pub(super) fn predict(&self, asked: &mut Asked, api: Api, backend: &Backend) -> f64 {
        let bins = self.0.get(backend.id).copied().flatten();
        let (first, second) = bins.unwrap_or_else(|| (asked.first_bin(0.0), asked.second_bin(0.0)));
        asked.predict(api, backend.id, first, second)
    }
}

/// Counts and mean latency of a report; what it does not carry is 0, as the model was trained.
pub(super) fn active_and_mean(report: &Report) -> (f64, f64) {
    (
        report.active.map_or(0.0, f64::from),
        report.mean_latency_50_ms.unwrap_or(0.0),
    )
}

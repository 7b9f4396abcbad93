//! One worker's state, shared by its listeners: the engine, the ledger, what never changes.

use crate::calibrate::Calibration;
use crate::clock::{Clock, process_cpu_ns};
use crate::config::{Config, Plan};
use crate::engine::Engine;
use crate::host::{self, CpuGroup};
use crate::ledger::{Ledger, Rates, Sample};
use crate::metrics::Metrics;
use crate::request_log::RequestLog;
use schema::load_report::LoadReport;
use schema::stats::Stats;
use schema::work_left::WorkLeft;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time between two readings of CPU, memory and rates.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Everything a handler needs.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) plan: Plan,
    pub(crate) host: Calibration,
    pub(crate) clock: Clock,
    pub(crate) engine: Engine,
    pub(crate) boot_id: String,
    pub(crate) log: Option<RequestLog>,
    pub(crate) metrics: Metrics,
    cpu_group: Option<CpuGroup>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ledger: Ledger,
    next_request: u64,
    memory_used_bytes: Option<u64>,
    throttled_us: Option<u64>,
}

/// What an [`App`] is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) plan: Plan,
    pub(crate) host: Calibration,
    pub(crate) clock: Clock,
    pub(crate) engine: Engine,
    pub(crate) log: Option<RequestLog>,
    pub(crate) cpu_group: Option<CpuGroup>,
    pub(crate) boot_id: String,
}

impl App {
    /// The state of a worker that has just started.
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            config: parts.config,
            plan: parts.plan,
            host: parts.host,
            clock: parts.clock,
            engine: parts.engine,
            boot_id: parts.boot_id,
            log: parts.log,
            metrics: Metrics::new(),
            cpu_group: parts.cpu_group,
            state: Mutex::default(),
        })
    }

    /// Runs `change` on the ledger.
    pub(crate) fn with_ledger<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> T {
        change(&mut self.lock().ledger)
    }

    /// A request id of this process, for a request that came without one.
    pub(crate) fn new_request_id(&self) -> String {
        let mut state = self.lock();
        state.next_request += 1;
        format!("{}-{}", self.boot_id, state.next_request)
    }

    /// `/stats` as of now.
    pub(crate) fn stats(&self) -> Stats {
        let now = self.sample();
        let work_left = self.config.tell_work_left.then(|| self.work_left());
        let state = self.lock();
        let ledger = &state.ledger;
        let counts = ledger.counts();
        let rates = ledger.rates(&now, self.config.cores);
        let shape = &self.plan.shape;
        Stats {
            container: self.config.name.clone(),
            cores: self.config.cores,
            memory_bytes: self.config.memory_bytes,
            active_requests: ledger.active(),
            mean_latency_ms_last_50: ledger.mean_latency_ms(),
            completed: counts.completed,
            failed: counts.failed,
            sampled_at_unix_ns: self.clock.unix_ns(now.at_ns),
            sequence: ledger.sequence(),
            cpu_percent: rates.cpu_percent,
            memory_used_bytes: state.memory_used_bytes,
            nominal_mips_per_core: shape.mips_per_core,
            native_mips_per_core: self.host.native_mips_per_core,
            burn_fraction: shape.burn_fraction,
            discipline: shape.discipline,
            loop_name: self.host.loop_name.into(),
            throttled_us: state.throttled_us,
            late_burns: counts.late_burns,
            boot_id: self.boot_id.clone(),
            service_time_mean_ms: ledger.mean_service_ms(),
            utilization: rates.utilization,
            qps: rates.qps,
            eps: rates.eps,
            rif_latency_ms: ledger.rif_latency_ms(now.at_ns),
            speed: rates.speed,
            work_left,
        }
    }

    /// The load report as of now.
    pub(crate) fn load_report(&self) -> LoadReport {
        let now = self.sample();
        let state = self.lock();
        let ledger = &state.ledger;
        let Rates {
            utilization,
            qps,
            eps,
            speed,
            ..
        } = ledger.rates(&now, self.config.cores);
        LoadReport {
            utilization: Some(rounded(utilization)),
            application_utilization: None,
            qps: Some(rounded(qps)),
            eps: Some(rounded(eps)),
            active: Some(ledger.active()),
            mean_latency_50_ms: ledger.mean_latency_ms().map(rounded),
            speed: speed.map(rounded),
            sequence: Some(ledger.sequence()),
        }
    }

    /// Work left of every request held, oldest first.
    pub(crate) fn work_left(&self) -> Vec<WorkLeft> {
        let list = self.engine.work_left().into_iter();
        list.map(|(request_id, core_ms)| WorkLeft {
            request_id,
            core_ms: rounded(core_ms),
        })
        .collect()
    }

    /// Keeps the rates, memory and throttling fresh; never ends.
    pub(crate) async fn keep_sampling(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let now = self.sample();
            let memory_used_bytes = host::memory_used_bytes();
            let throttled_us = self.cpu_group.as_ref().and_then(CpuGroup::throttled_us);
            let mut state = self.lock();
            state.ledger.keep(now);
            state.memory_used_bytes = memory_used_bytes;
            state.throttled_us = throttled_us;
        }
    }

    fn sample(&self) -> Sample {
        let totals = self.engine.totals();
        let cpu_ns = process_cpu_ns();
        self.lock()
            .ledger
            .sample(self.clock.now_ns(), cpu_ns, totals)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Three decimals: headers stay short.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

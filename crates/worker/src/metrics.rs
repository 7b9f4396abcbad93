//! `/metrics` in the OpenMetrics text form. Counters here never go back, whatever `/api/reset` does.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use schema::stats::Stats;
use std::sync::atomic::AtomicU64;

type FloatGauge = Gauge<f64, AtomicU64>;

/// The worker's metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Requests answered with success.
    pub(crate) completed: Counter,
    /// Requests answered with an error of the worker's own.
    pub(crate) failed: Counter,
    /// Requests whose client went away.
    pub(crate) aborted: Counter,
    /// Completed late because of their own burn.
    pub(crate) late_burns: Counter,
    /// Latency at the worker.
    pub(crate) latency: Histogram,
    active: Gauge,
    utilization: FloatGauge,
    memory: Gauge,
    throttled: FloatGauge,
    cpu_percent: FloatGauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        // From 1 ms to 65 s, doubling.
        let latency = Histogram::new(exponential_buckets(1e-3, 2.0, 17));
        let mut metrics = Self {
            registry: Registry::with_prefix("plumbline_worker"),
            completed: Counter::default(),
            failed: Counter::default(),
            aborted: Counter::default(),
            late_burns: Counter::default(),
            latency,
            active: Gauge::default(),
            utilization: FloatGauge::default(),
            memory: Gauge::default(),
            throttled: FloatGauge::default(),
            cpu_percent: FloatGauge::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let r = &mut self.registry;
        let completed = self.completed.clone();
        r.register("completed", "Requests answered with success", completed);
        let failed = self.failed.clone();
        r.register("failed", "Requests answered with an error", failed);
        let aborted = self.aborted.clone();
        r.register("aborted", "Requests whose client went away", aborted);
        let late = self.late_burns.clone();
        r.register("late_burns", "Responses that waited for their burn", late);
        let latency = self.latency.clone();
        let help = "Arrival to response at the worker";
        r.register_with_unit("latency", help, Unit::Seconds, latency);
        r.register("active_requests", "Requests held", self.active.clone());
        let utilization = self.utilization.clone();
        r.register(
            "utilization",
            "Busy share of the cores, last second",
            utilization,
        );
        let memory = self.memory.clone();
        r.register_with_unit("memory_used", "Resident memory", Unit::Bytes, memory);
        let throttled = self.throttled.clone();
        let help = "Time held back by the CPU quota";
        r.register_with_unit("throttled", help, Unit::Seconds, throttled);
        let cpu = self.cpu_percent.clone();
        r.register("cpu_percent", "CPU of the process, 100 = one core", cpu);
    }

    /// The text, with the gauges as `stats` has them.
    pub(crate) fn text(&self, stats: &Stats) -> String {
        self.active.set(i64::from(stats.active_requests));
        self.utilization.set(stats.utilization);
        self.memory.set(stats.memory_used_bytes.unwrap_or(0) as i64);
        self.throttled
            .set(stats.throttled_us.unwrap_or(0) as f64 * 1e-6);
        self.cpu_percent.set(stats.cpu_percent.unwrap_or(0.0));
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

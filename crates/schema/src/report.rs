//! One statement of a worker about itself, as the dispatcher takes it and the event log records it.

use serde::{Deserialize, Serialize};

/// How a report reached the balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// `GET /stats` on a timer.
    Poll,
    /// Load-report header of a response.
    Piggyback,
    /// `GET /stats` asked for by a strategy.
    Probe,
    /// CPU and memory from the container engine (or from the process table).
    Docker,
}

/// One report. Fields a source does not carry are absent; absent never means zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Report {
    /// How it came.
    pub source: Source,
    /// The worker's own running number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// When it was true, ns since run start: for polls and probes the time the request left the
    /// balancer, for the others the arrival.
    pub sampled_at_ns: u64,
    /// Requests the worker holds, whoever sent them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
    /// Mean latency of the worker's last 50 responses, ms; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_latency_50_ms: Option<f64>,
    /// Mean CPU part of recent responses, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time_mean_ms: Option<f64>,
    /// Busy share of the worker's own cores over the last second, 0..1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Utilization as the application itself reports it, when it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_utilization: Option<f64>,
    /// Completions per second, last second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps: Option<f64>,
    /// Failures per second, last second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eps: Option<f64>,
    /// CPU use, 100 = one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// Memory in use, MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_mib: Option<f64>,
    /// Median latency of recent responses at about the present number in flight, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rif_latency_ms: Option<f64>,
    /// Work done over busy core time in the last second; 1 = nominal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Work left per held job, if the worker tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_left: Option<Vec<crate::work_left::WorkLeft>>,
    /// The dispatcher's own sends to this backend so far, taken at `sampled_at_ns`.
    #[serde(default)]
    pub sent_before: u64,
    /// The dispatcher's own in_flight at this backend, taken at `sampled_at_ns`.
    #[serde(default)]
    pub in_flight_before: u32,
}

impl Report {
    /// An empty report of `source`, true at `sampled_at_ns`.
    pub fn empty(source: Source, sampled_at_ns: u64) -> Self {
        Self {
            source,
            sequence: None,
            sampled_at_ns,
            active: None,
            mean_latency_50_ms: None,
            service_time_mean_ms: None,
            utilization: None,
            application_utilization: None,
            qps: None,
            eps: None,
            cpu_percent: None,
            memory_used_mib: None,
            rif_latency_ms: None,
            speed: None,
            work_left: None,
            sent_before: 0,
            in_flight_before: 0,
        }
    }
}

crate::objects!(Report);

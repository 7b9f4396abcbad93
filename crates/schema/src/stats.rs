//! The JSON a worker serves at `/stats`.

use crate::report::{Report, Source};
use crate::work_left::WorkLeft;
use serde::{Deserialize, Serialize};

/// Bytes per GB in every flag, label and limit: 2^30, as Docker's `g`.
pub const BYTES_PER_GB: u64 = 1 << 30;
/// Bytes per MiB.
pub const BYTES_PER_MIB: u64 = 1 << 20;

/// How a worker shares its cores among the requests it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discipline {
    /// Processor sharing: each of n requests runs at min(1, c/n) of a core.
    #[default]
    Ps,
    /// First come, first served by max(1, round(c)) servers.
    Fcfs,
}

impl std::str::FromStr for Discipline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ps" => Ok(Self::Ps),
            "fcfs" => Ok(Self::Fcfs),
            _ => Err(format!("unknown discipline \"{text}\"; known: ps, fcfs")),
        }
    }
}

impl std::fmt::Display for Discipline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ps => "ps",
            Self::Fcfs => "fcfs",
        })
    }
}

/// What `/stats` answers. A mean of nothing is null, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Stats {
    /// The worker's name.
    pub container: String,
    /// Its cores; may be fractional.
    pub cores: f64,
    /// Its memory limit, bytes.
    pub memory_bytes: u64,
    /// Requests held now.
    pub active_requests: u32,
    /// Mean latency of the last 50 responses, ms; null before the first.
    pub mean_latency_ms_last_50: Option<f64>,
    /// Requests answered with success since start or reset.
    pub completed: u64,
    /// Requests answered with an error of the worker's own since start or reset.
    pub failed: u64,
    /// When this was true, wall clock, ns since 1970.
    pub sampled_at_unix_ns: u64,
    /// Grows by one with every change of the counts.
    pub sequence: u64,
    /// Process CPU use over the last second, 100 = one core; null before the first second.
    pub cpu_percent: Option<f64>,
    /// Resident memory, bytes.
    pub memory_used_bytes: Option<u64>,
    /// Speed a lane is held at, MIPS; equals the native speed when it runs flat out.
    pub nominal_mips_per_core: f64,
    /// Best speed of one core measured at boot, MIPS.
    pub native_mips_per_core: f64,
    /// Share of the instructions really executed, 0..1.
    pub burn_fraction: f64,
    /// How cores are shared.
    pub discipline: Discipline,
    /// Name of the instruction loop.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// Time the kernel held the worker back by its CPU quota, microseconds; null where unknown.
    pub throttled_us: Option<u64>,
    /// Responses that had to wait for their own burn beyond the nominal time.
    pub late_burns: u64,
    /// Changes with every start of the process.
    pub boot_id: String,
    /// Mean service time of the last 50 responses, ms; null before the first.
    pub service_time_mean_ms: Option<f64>,
    /// Busy share of its own cores over the last second, 0..1.
    pub utilization: f64,
    /// Completions per second over the last second.
    pub qps: f64,
    /// Failures per second over the last second.
    pub eps: f64,
    /// Median latency of the recent responses that arrived at about the present number held, ms.
    pub rif_latency_ms: Option<f64>,
    /// Work done over busy core time in the last second; 1 = nominal; null when idle.
    pub speed: Option<f64>,
    /// Work left per held job, only with `--tell-work-left`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_left: Option<Vec<WorkLeft>>,
}

impl Stats {
    /// The same statement as a report that was true at `sampled_at_ns` of the balancer's clock.
    pub fn to_report(&self, source: Source, sampled_at_ns: u64) -> Report {
        Report {
            sequence: Some(self.sequence),
            active: Some(self.active_requests),
            mean_latency_50_ms: self.mean_latency_ms_last_50,
            service_time_mean_ms: self.service_time_mean_ms,
            utilization: Some(self.utilization),
            qps: Some(self.qps),
            eps: Some(self.eps),
            cpu_percent: self.cpu_percent,
            memory_used_mib: self
                .memory_used_bytes
                .map(|b| b as f64 / BYTES_PER_MIB as f64),
            rif_latency_ms: self.rif_latency_ms,
            speed: self.speed,
            work_left: self.work_left.clone(),
            ..Report::empty(source, sampled_at_ns)
        }
    }
}

crate::objects!(Stats);

#[cfg(test)]
mod tests;

//! From stamps to errors, a table and a verdict.

use super::replay::{Planned, Seen, Setup};
use crate::calibrate::calibrate;
use crate::cli::SelftestArgs;
use crate::machine::Shape;
use crate::model::{self, Arrival};
use serde::Serialize;

/// Largest error of the mean, and of the 95th percentile, as shares.
const MAX_MEAN_ERROR: f64 = 0.02;
const MAX_P95_ERROR: f64 = 0.05;
/// Largest share of late burns in a run that counts.
const MAX_LATE_SHARE: f64 = 0.01;

/// Mean and 95th percentile of latencies, ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Latency {
    mean_ms: f64,
    p95_ms: f64,
}

/// Measured against model.
#[derive(Debug, Clone, Copy, Serialize)]
struct Comparison {
    measured: Latency,
    model: Latency,
    /// Shares: 0.01 = measured is 1 % above the model.
    mean_error: f64,
    p95_error: f64,
}

/// One load.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LoadResult {
    load: f64,
    requests: usize,
    burn_fractions: Vec<f64>,
    machine: Comparison,
    client: Comparison,
    late_burn_share: f64,
    passed: bool,
}

/// All loads.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Verdict {
    schema: &'static str,
    cores: Vec<f64>,
    arrivals: String,
    discipline: String,
    mips_per_core: f64,
    seed: u64,
    host: crate::calibrate::Calibration,
    loads: Vec<LoadResult>,
    passed: bool,
}

impl LoadResult {
    pub(super) fn new(
        load: f64,
        shapes: &[Shape],
        planned: &[Planned],
        seen: &[Seen],
        setup: Setup,
    ) -> Self {
        let machine = compare(shapes, planned, seen, |s| (s.arrived_ns, s.ended_ns));
        let client = compare(shapes, planned, seen, |s| (s.sent_ns, s.done_ns));
        let late: u64 = setup.stats.iter().map(|s| s.late_burns).sum();
        let late_burn_share = late as f64 / planned.len() as f64;
        Self {
            load,
            requests: planned.len(),
            burn_fractions: setup.stats.iter().map(|s| s.burn_fraction).collect(),
            machine,
            client,
            late_burn_share,
            passed: machine.mean_error.abs() <= MAX_MEAN_ERROR
                && machine.p95_error.abs() <= MAX_P95_ERROR
                && late_burn_share <= MAX_LATE_SHARE,
        }
    }
}

/// Compares (from, to) stamps with the model fed the same `from` stamps and sizes.
fn compare(
    shapes: &[Shape],
    planned: &[Planned],
    seen: &[Seen],
    stamps: impl Fn(&Seen) -> (f64, f64),
) -> Comparison {
    let mut measured_ms = Vec::new();
    let mut model_ms = Vec::new();
    for (worker, shape) in shapes.iter().enumerate() {
        let mut requests: Vec<(f64, f64, f64)> = planned
            .iter()
            .zip(seen)
            .filter(|(p, _)| p.worker == worker)
            .map(|(p, s)| (stamps(s).0, stamps(s).1, p.mi))
            .collect();
        requests.sort_by(|a, b| a.0.total_cmp(&b.0));
        let trace: Vec<Arrival> = requests
            .iter()
            .map(|(at_ns, _, mi)| Arrival {
                at_ns: *at_ns,
                mi: *mi,
                gives_up_ns: f64::INFINITY,
            })
            .collect();
        let left_ns = model::departures(shape, &trace);
        for ((from_ns, to_ns, _), left_ns) in requests.iter().zip(left_ns) {
            measured_ms.push((to_ns - from_ns) * 1e-6);
            model_ms.push((left_ns - from_ns) * 1e-6);
        }
    }
    let measured = latency(measured_ms);
    let model = latency(model_ms);
    Comparison {
        measured,
        model,
        mean_error: measured.mean_ms / model.mean_ms - 1.0,
        p95_error: measured.p95_ms / model.p95_ms - 1.0,
    }
}

fn latency(mut ms: Vec<f64>) -> Latency {
    ms.sort_by(f64::total_cmp);
    let rank = (ms.len() as f64 * 0.95).ceil() as usize;
    Latency {
        mean_ms: ms.iter().sum::<f64>() / ms.len() as f64,
        p95_ms: ms.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN),
    }
}

impl Verdict {
    pub(super) fn new(args: &SelftestArgs, loads: Vec<LoadResult>) -> Self {
        let passed = loads.iter().all(|l| l.passed);
        Self {
            schema: "plumbline.worker-selftest/1",
            cores: args.cores.clone(),
            arrivals: format!("{:?}", args.arrivals).to_lowercase(),
            discipline: args.discipline.to_string(),
            mips_per_core: args.mips_per_core,
            seed: args.seed,
            host: calibrate(),
            loads,
            passed,
        }
    }

    pub(super) fn passed(&self) -> bool {
        self.passed
    }

    /// Prints a table, or JSON.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            console::say!("{}", serde_json::to_string_pretty(self)?)?;
            return Ok(());
        }
        console::say!(
            "workers with {:?} cores of {} MIPS, {}, {} arrivals; host: {} cores of {} MIPS ({} all busy)",
            self.cores,
            self.mips_per_core,
            self.discipline,
            self.arrivals,
            self.host.host_cores,
            self.host.native_mips_per_core,
            self.host.native_mips_all_busy
        )?;
        console::say!(
            "load   seen by  requests  mean ms  exact ms   error   p95 ms  exact ms   error"
        )?;
        for load in &self.loads {
            for (by, c) in [("machine", &load.machine), ("client", &load.client)] {
                console::say!(
                    "{:<6} {:<8} {:>8} {:>8.2} {:>9.2} {:>+6.2}% {:>8.2} {:>9.2} {:>+6.2}%",
                    load.load,
                    by,
                    load.requests,
                    c.measured.mean_ms,
                    c.model.mean_ms,
                    c.mean_error * 100.0,
                    c.measured.p95_ms,
                    c.model.p95_ms,
                    c.p95_error * 100.0
                )?;
            }
            console::say!(
                "       burn fractions {:?}, late burns {:.2}%: {}",
                load.burn_fractions,
                load.late_burn_share * 100.0,
                if load.passed {
                    "ok"
                } else {
                    "beyond 2 % (mean), 5 % (p95) or 1 % (late)"
                }
            )?;
        }
        Ok(())
    }
}

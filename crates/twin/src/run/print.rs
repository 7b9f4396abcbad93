//! What `twin run` prints.

use crate::build::Plan;
use crate::tally::{Outcome, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The JSON of a run. An unstable run has no mean and no percentile.
#[derive(Debug, Serialize)]
pub(super) struct Result {
    strategy: String,
    requests: u64,
    load: Option<f64>,
    mean_service_ms: f64,
    mean_ms: Option<f64>,
    half_width_ms: Option<f64>,
    mean_over_service: Option<f64>,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    unstable: bool,
    /// Only if there were too few requests to tell whether it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    too_short: bool,
    shares: BTreeMap<String, f64>,
    /// Only if some request was not answered well.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<u64>,
    /// Only for slots of callers: actions that began after the warm-up, and the good ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    good_actions: Option<u64>,
    /// Only of an unstable run.
    #[serde(skip_serializing_if = "Option::is_none")]
    drift_rps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overloaded: Option<String>,
}

impl Result {
    pub(super) fn new(plan: &Plan, outcome: &Outcome) -> Self {
        let shown = Shown::new(outcome);
        let ms = |s: Option<f64>| s.map(|s| s * 1e3);
        let workers = &plan.setup.workers;
        let shares = workers.iter().zip(&outcome.shares);
        let (drift_rps, worker) = match outcome.verdict {
            Verdict::Unstable { drift_rps, worker } => (Some(drift_rps), Some(worker)),
            Verdict::Stable | Verdict::TooShort | Verdict::Inconclusive { .. } => (None, None),
        };
        Self {
            strategy: plan.spec.to_string(),
            requests: outcome.requests,
            load: plan.load,
            mean_service_ms: plan.setup.mean_work * 1e3,
            mean_ms: ms(shown.mean),
            half_width_ms: ms(shown.half_width),
            mean_over_service: shown.mean.map(|m| m / plan.setup.mean_work),
            p50_ms: ms(shown.quantiles.map(|q| q[0])),
            p95_ms: ms(shown.quantiles.map(|q| q[1])),
            p99_ms: ms(shown.quantiles.map(|q| q[2])),
            unstable: worker.is_some(),
            too_short: outcome.verdict == Verdict::TooShort,
            shares: shares.map(|(w, share)| (w.name.clone(), *share)).collect(),
            failed: (outcome.failed > 0).then_some(outcome.failed),
            actions: outcome.actions.map(|a| a.complete),
            good_actions: outcome.actions.map(|a| a.good),
            drift_rps,
            overloaded: worker.map(|w| workers[w].name.clone()),
        }
    }
}

/// What may be shown of the latencies.
struct Shown {
    mean: Option<f64>,
    half_width: Option<f64>,
    quantiles: Option<[f64; 3]>,
}

impl Shown {
    fn new(outcome: &Outcome) -> Self {
        match outcome.verdict {
            Verdict::Unstable { .. } => Self {
                mean: None,
                half_width: None,
                quantiles: None,
            },
            Verdict::Stable | Verdict::TooShort | Verdict::Inconclusive { .. } => Self {
                mean: outcome.mean,
                half_width: outcome.half_width,
                quantiles: outcome.quantiles,
            },
        }
    }
}

/// The table for people.
pub(super) fn table(plan: &Plan, outcome: &Outcome) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<12}{value}");
    };
    let oracle = if plan.spec.entry().needs_cost {
        " (oracle)"
    } else {
        ""
    };
    line("strategy", format!("{}{oracle}", plan.spec));
    line("requests", outcome.requests.to_string());
    if let Some(load) = plan.load {
        line("load", format!("{load:.4}"));
    }
    let service = plan.setup.mean_work;
    line(
        "service",
        format!("{:.3} ms alone on a core of speed 1", service * 1e3),
    );
    if let Verdict::Unstable { drift_rps, worker } = outcome.verdict {
        let name = &plan.setup.workers[worker].name;
        let what = format!(
            "the number in the system grows by {drift_rps:.3} a second; worker {name} gets more work than it can do"
        );
        line("unstable", what);
    }
    let shown = Shown::new(outcome);
    if let Some(mean) = shown.mean {
        let error = shown
            .half_width
            .map_or(String::new(), |h| format!(" +- {:.3}", h * 1e3));
        line(
            "mean",
            format!("{:.3}{error} ms = {:.4} S", mean * 1e3, mean / service),
        );
    }
    if let Some([p50, p95, p99]) = shown.quantiles {
        line("p50", format!("{:.3} ms", p50 * 1e3));
        line("p95", format!("{:.3} ms", p95 * 1e3));
        line("p99", format!("{:.3} ms", p99 * 1e3));
    }
    if outcome.failed > 0 {
        line(
            "failed",
            format!("{} of {}", outcome.failed, outcome.requests),
        );
    }
    if let Some(actions) = outcome.actions {
        let share = actions.good as f64 / actions.complete.max(1) as f64;
        line(
            "actions",
            format!("{} of {} good = {share:.5}", actions.good, actions.complete),
        );
    }
    if matches!(outcome.verdict, Verdict::Inconclusive { .. }) {
        line(
            "note",
            "one of two signs says unstable: run longer to tell".into(),
        );
    }
    if outcome.verdict == Verdict::TooShort {
        let what = "too short to tell whether it is stable: run longer";
        line("note", what.into());
    }
    for (worker, share) in plan.setup.workers.iter().zip(&outcome.shares).take(30) {
        line(&format!("share {}", worker.name), format!("{share:.4}"));
    }
    if plan.setup.workers.len() > 30 {
        line(
            "",
            format!("and {} workers more", plan.setup.workers.len() - 30),
        );
    }
    out
}

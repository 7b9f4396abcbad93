//! One line per run: latency, throughput, shares, outcomes. The warm-up is left out of all of them.
//!
//! Latency counts from the time a request was due, over ok rows only; the other outcomes are
//! counted beside it. Throughput is sum(MI) / sum(latency) in MI per ms, with the completed
//! requests per second beside it.

use std::collections::BTreeMap;

use schema::lateness;
use schema::row::Row;
use serde::Serialize;

use super::intervals::{mean, quantile};
use super::stability::{Verdict, Word, judge};

/// What became of a request; exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Ok,
    Error,
    Timeout,
    Cancelled,
    NeverSent,
}

impl Outcome {
    pub(crate) const ALL: [Self; 5] = [
        Self::Ok,
        Self::Error,
        Self::Timeout,
        Self::Cancelled,
        Self::NeverSent,
    ];

    /// As the column `error` tells it.
    pub(crate) fn of(row: &Row) -> Self {
        match row.error.split(':').next().unwrap_or_default() {
            "" => Self::Ok,
            "timeout" => Self::Timeout,
            "cancelled" => Self::Cancelled,
            "never_sent" => Self::NeverSent,
            _ => Self::Error,
        }
    }

    /// As JSON names it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::NeverSent => "never_sent",
        }
    }
}

/// One strategy replayed once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Run {
    pub(crate) run_id: String,
    pub(crate) block: u32,
    pub(crate) label: String,
    /// Rows after the warm-up.
    pub(crate) rows: usize,
    pub(crate) warmup_rows: usize,
    /// Rows after the warm-up by outcome.
    pub(crate) outcomes: BTreeMap<&'static str, usize>,
    /// Rows after the warm-up that were not answered well, by the column `error`.
    pub(crate) reasons: BTreeMap<String, usize>,
    pub(crate) mean_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) throughput_mi_per_ms: f64,
    pub(crate) completed_rps: f64,
    /// Share of the dispatched requests by worker.
    pub(crate) shares: BTreeMap<String, f64>,
    pub(crate) lateness_p50_ms: f64,
    pub(crate) lateness_p99_ms: f64,
    /// Mean gap between due times.
    pub(crate) mean_gap_ms: f64,
    /// The generator was late by the rule of `schema::lateness`.
    pub(crate) late: bool,
    pub(crate) verdict: Verdict,
}

impl Run {
    /// Summarizes the rows of one run; `None` without rows.
    pub(crate) fn summarize(rows: &[&Row], mips_per_core: f64) -> Option<Self> {
        let first = rows.first()?;
        let measured: Vec<&Row> = rows.iter().copied().filter(|r| !r.warmup).collect();
        let ok: Vec<&Row> = measured
            .iter()
            .copied()
            .filter(|r| Outcome::of(r) == Outcome::Ok)
            .collect();
        let latency = sorted(ok.iter().filter_map(|r| r.latency_ms));
        let late_by = |r: &&Row| Some(r.sent_ns?.saturating_sub(r.intended_ns));
        let mut late_ns: Vec<u64> = measured.iter().filter_map(late_by).collect();
        late_ns.sort_unstable();
        let late_at = |q| schema::quantile::quantile(&late_ns, q, |ns| ns as f64);
        let late_at_ms = |q| late_at(q).map_or(f64::NAN, |ns| ns / 1e6);
        let missing = rows.iter().filter(|r| lateness::is_missing(&r.error));
        let mean_gap_ms = mean_gap_ms(rows);
        let late = lateness::is_late(
            late_at(0.99),
            lateness::bound_ns(mean_gap_ms * 1e6),
            missing.count() as u64,
        );
        Some(Self {
            run_id: first.run_id.clone(),
            block: first.block.unwrap_or_default(),
            label: first.strategy.clone(),
            rows: measured.len(),
            warmup_rows: rows.len() - measured.len(),
            outcomes: count_outcomes(&measured),
            reasons: count_reasons(&measured),
            mean_ms: mean(&latency),
            p50_ms: quantile(&latency, 0.5),
            p95_ms: quantile(&latency, 0.95),
            p99_ms: quantile(&latency, 0.99),
            throughput_mi_per_ms: ok.iter().map(|r| r.task_size_mi).sum::<f64>()
                / latency.iter().sum::<f64>(),
            completed_rps: completed_rps(&measured, &ok),
            shares: shares(&measured),
            lateness_p50_ms: late_at_ms(0.5),
            lateness_p99_ms: late_at_ms(0.99),
            mean_gap_ms,
            late,
            verdict: judge(rows, mips_per_core),
        })
    }

    /// The run gets no mean and no rank.
    pub(crate) fn flagged(&self) -> bool {
        self.verdict.word == Word::Unstable
    }

    /// Rows with this outcome.
    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.outcomes.get(outcome.as_str()).copied().unwrap_or(0)
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn count_outcomes(rows: &[&Row]) -> BTreeMap<&'static str, usize> {
    let count = |o: Outcome| rows.iter().filter(|r| Outcome::of(r) == o).count();
    Outcome::ALL.map(|o| (o.as_str(), count(o))).into()
}

fn count_reasons(rows: &[&Row]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in rows.iter().filter(|r| !r.error.is_empty()) {
        *counts.entry(row.error.clone()).or_default() += 1;
    }
    counts
}

fn mean_gap_ms(rows: &[&Row]) -> f64 {
    let due = || rows.iter().map(|r| r.intended_ns);
    match (due().min(), due().max()) {
        (Some(first), Some(last)) if rows.len() > 1 => {
            (last - first) as f64 / (rows.len() - 1) as f64 / 1e6
        }
        _ => 0.0,
    }
}

/// Ok answers per second between the first due time and the last end.
fn completed_rps(measured: &[&Row], ok: &[&Row]) -> f64 {
    let begin = measured.iter().map(|r| r.intended_ns).min();
    let end = ok.iter().filter_map(|r| r.done_ns).max();
    match (begin, end) {
        (Some(begin), Some(end)) if end > begin => ok.len() as f64 / (end - begin) as f64 * 1e9,
        _ => 0.0,
    }
}

fn shares(measured: &[&Row]) -> BTreeMap<String, f64> {
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for name in measured.iter().filter_map(|r| r.container.as_ref()) {
        *counts.entry(name.clone()).or_default() += 1.0;
    }
    let all: f64 = counts.values().sum();
    counts
        .into_iter()
        .map(|(name, n)| (name, n / all))
        .collect()
}

//! Which strategy is better, by how much, and how sure are we.
//!
//! Strategies are compared within blocks: the statistic is the log-ratio of a run to the baseline's
//! run of the same block. Student's t gives the interval, a sign-flip test the p value, Holm
//! corrects for the number of strategies, and the baseline's second arm (A/A) shows what no
//! difference looks like here. A claim needs all of it: an adjusted p below .05 and a difference
//! beyond the A/A interval, between arms that failed alike (`failures`).

use std::collections::BTreeMap;

use evidence::{ALPHA, blocks_needed, holm, sign_flip};
use serde::Serialize;

use super::failures::{Failures, least};
use super::intervals::{Interval, student};
use super::run::{Outcome, Run};

/// Prefix of the label under which the baseline runs a second time in each block.
pub(crate) const AA_PREFIX: &str = "aa:";
/// Metrics that are compared with the baseline.
const COMPARED: [Metric; 4] = [Metric::MeanMs, Metric::P50Ms, Metric::P95Ms, Metric::P99Ms];

/// A number of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    MeanMs,
    P50Ms,
    P95Ms,
    P99Ms,
    ThroughputMiPerMs,
    CompletedRps,
}

impl Metric {
    pub(crate) const ALL: [Self; 6] = [
        Self::MeanMs,
        Self::P50Ms,
        Self::P95Ms,
        Self::P99Ms,
        Self::ThroughputMiPerMs,
        Self::CompletedRps,
    ];

    /// As JSON and `--fail-if` name it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::MeanMs => "mean_ms",
            Self::P50Ms => "p50_ms",
            Self::P95Ms => "p95_ms",
            Self::P99Ms => "p99_ms",
            Self::ThroughputMiPerMs => "throughput_mi_per_ms",
            Self::CompletedRps => "completed_rps",
        }
    }

    /// Its value in a run.
    pub(crate) fn of(self, run: &Run) -> f64 {
        match self {
            Self::MeanMs => run.mean_ms,
            Self::P50Ms => run.p50_ms,
            Self::P95Ms => run.p95_ms,
            Self::P99Ms => run.p99_ms,
            Self::ThroughputMiPerMs => run.throughput_mi_per_ms,
            Self::CompletedRps => run.completed_rps,
        }
    }
}

/// One strategy against the baseline in one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Difference {
    /// Blocks that both have.
    pub(crate) blocks: Vec<u32>,
    /// Strategy over baseline with 95 % bounds; below 1 is faster.
    pub(crate) ratio: Interval,
    /// Sign-flip p of the paired log-ratios.
    pub(crate) p: f64,
    /// The same, adjusted for the number of strategies compared.
    pub(crate) p_holm: f64,
}

/// What the data allow to say against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Claim {
    Faster,
    Slower,
}

/// All runs of one label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Strategy {
    pub(crate) label: String,
    /// The baseline's second appearance.
    pub(crate) aa: bool,
    pub(crate) runs: usize,
    /// Some run was unstable: no mean, no rank.
    pub(crate) flagged: bool,
    /// Requests after the warm-up that were not answered well, as a share, 0..1.
    pub(crate) failed_share: f64,
    /// They were too many, so its latencies are compared with nothing: no rank, no claim.
    pub(crate) failing: bool,
    /// The generator was late in some run (`schema::lateness`).
    pub(crate) late: bool,
    /// 1 = smallest mean; absent for A/A, flagged and failing arms.
    pub(crate) rank: Option<usize>,
    /// Means over the runs.
    #[serde(flatten)]
    pub(crate) metrics: BTreeMap<&'static str, Interval>,
    /// Mean share of the dispatched requests by worker.
    pub(crate) shares: BTreeMap<String, f64>,
    /// Rows after the warm-up by outcome, all runs.
    pub(crate) outcomes: BTreeMap<&'static str, usize>,
    /// Rows after the warm-up that were not answered well, by the column `error`, all runs.
    pub(crate) reasons: BTreeMap<String, usize>,
    /// Against the baseline, by metric; empty for the baseline and where one of the two is flagged or
    /// failing.
    pub(crate) against_baseline: BTreeMap<&'static str, Difference>,
    pub(crate) claim: Option<Claim>,
}

/// All strategies, in the order of `labels`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    pub(crate) baseline: String,
    /// Blocks with at least one run.
    pub(crate) blocks: usize,
    /// Fewest blocks with which every comparison could be significant.
    pub(crate) blocks_needed: u32,
    pub(crate) strategies: Vec<Strategy>,
}

impl Comparison {
    /// Compares `runs`; `labels` are the strategies in the order asked for, the baseline first.
    pub(crate) fn of(runs: &[Run], labels: &[String]) -> Self {
        let baseline = labels.first().cloned().unwrap_or_default();
        let mut names = labels.to_vec();
        names.push(format!("{AA_PREFIX}{baseline}"));
        let grouped: Vec<(String, Vec<&Run>)> = names
            .into_iter()
            .map(|label| {
                let own: Vec<&Run> = runs.iter().filter(|r| r.label == label).collect();
                (label, own)
            })
            .filter(|(_, own)| !own.is_empty())
            .collect();
        let best = least(grouped.iter().map(|(_, own)| Failures::of(own)));
        let mut strategies: Vec<Strategy> = grouped
            .iter()
            .map(|(label, own)| strategy(label, own, best.unwrap_or_default()))
            .collect();
        let base_fits = strategies
            .iter()
            .any(|s| s.label == baseline && s.comparable());
        if let Some((_, base)) = grouped.iter().find(|(label, _)| *label == baseline) {
            for ((label, own), strategy) in grouped.iter().zip(&mut strategies) {
                if *label != baseline && base_fits && strategy.comparable() {
                    strategy.against_baseline = differences(own, base);
                }
            }
        }
        adjust(&mut strategies);
        claim(&mut strategies);
        rank(&mut strategies);
        let mut blocks: Vec<u32> = runs.iter().map(|r| r.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        Self {
            baseline,
            blocks: blocks.len(),
            blocks_needed: blocks_needed(labels.len().saturating_sub(1)),
            strategies,
        }
    }
}

impl Comparison {
    /// What is left for a result that claims nothing: the figures of each strategy by itself, without
    /// rank, difference and claim.
    pub(crate) fn withdraw(&mut self) {
        for strategy in &mut self.strategies {
            strategy.rank = None;
            strategy.against_baseline.clear();
            strategy.claim = None;
        }
    }
}

impl Strategy {
    /// Its latencies may stand beside those of others.
    fn comparable(&self) -> bool {
        !self.flagged && !self.failing
    }
}

fn strategy(label: &str, runs: &[&Run], least_failures: Failures) -> Strategy {
    let flagged = runs.iter().any(|r| r.flagged());
    let interval = |metric: Metric| {
        let values: Vec<f64> = runs
            .iter()
            .map(|r| metric.of(r))
            .filter(|v| v.is_finite())
            .collect();
        if flagged {
            Interval::UNKNOWN
        } else {
            student(&values)
        }
    };
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for (name, share) in runs.iter().flat_map(|r| &r.shares) {
        *shares.entry(name.clone()).or_default() += share / runs.len() as f64;
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for (reason, count) in runs.iter().flat_map(|r| &r.reasons) {
        *reasons.entry(reason.clone()).or_default() += count;
    }
    let failures = Failures::of(runs);
    let total = |o: Outcome| runs.iter().map(|r| r.count(o)).sum();
    Strategy {
        label: label.to_string(),
        aa: label.starts_with(AA_PREFIX),
        runs: runs.len(),
        flagged,
        failed_share: failures.share(),
        failing: failures.too_many_beside(least_failures),
        late: runs.iter().any(|r| r.late),
        rank: None,
        metrics: Metric::ALL.map(|m| (m.as_str(), interval(m))).into(),
        shares,
        outcomes: Outcome::ALL.map(|o| (o.as_str(), total(o))).into(),
        reasons,
        against_baseline: BTreeMap::new(),
        claim: None,
    }
}

fn differences(own: &[&Run], base: &[&Run]) -> BTreeMap<&'static str, Difference> {
    let difference = |metric: Metric| {
        let mut pairs: Vec<(u32, f64)> = own
            .iter()
            .filter_map(|run| {
                let theirs = base.iter().find(|b| b.block == run.block)?;
                let log = (metric.of(run) / metric.of(theirs)).ln();
                log.is_finite().then_some((run.block, log))
            })
            .collect();
        pairs.sort_unstable_by_key(|(block, _)| *block);
        let (blocks, logs): (Vec<u32>, Vec<f64>) = pairs.into_iter().unzip();
        (!logs.is_empty()).then(|| Difference {
            blocks,
            ratio: student(&logs).exp(),
            p: if logs.len() > 1 {
                sign_flip(&logs)
            } else {
                f64::NAN
            },
            p_holm: f64::NAN,
        })
    };
    COMPARED
        .into_iter()
        .filter_map(|m| Some((m.as_str(), difference(m)?)))
        .collect()
}

/// Holm over the strategies, metric by metric; the A/A arm is no comparison.
fn adjust(strategies: &mut [Strategy]) {
    for metric in COMPARED.map(Metric::as_str) {
        let mut found: Vec<&mut Difference> = strategies
            .iter_mut()
            .filter(|s| !s.aa)
            .filter_map(|s| s.against_baseline.get_mut(metric))
            .collect();
        let p: Vec<f64> = found.iter().map(|d| d.p).collect();
        for (difference, adjusted) in found.iter_mut().zip(holm(&p)) {
            difference.p_holm = adjusted;
        }
    }
}

fn claim(strategies: &mut [Strategy]) {
    let mean_ratio = |s: &Strategy| s.against_baseline.get(Metric::MeanMs.as_str()).cloned();
    let floor = strategies
        .iter()
        .find(|s| s.aa)
        .and_then(mean_ratio)
        .map(|d| d.ratio)
        .filter(Interval::has_bounds)
        .map(|r| r.low.ln().abs().max(r.high.ln().abs()));
    let Some(floor) = floor else { return };
    for strategy in strategies.iter_mut().filter(|s| !s.aa) {
        let Some(difference) = mean_ratio(strategy) else {
            continue;
        };
        let size = difference.ratio.point.ln();
        if difference.p_holm < ALPHA && size.abs() > floor {
            strategy.claim = Some(if size < 0.0 {
                Claim::Faster
            } else {
                Claim::Slower
            });
        }
    }
}

fn rank(strategies: &mut [Strategy]) {
    let mut fit: Vec<(f64, usize)> = strategies
        .iter()
        .enumerate()
        .filter(|(_, s)| !s.aa && s.comparable())
        .map(|(i, s)| (s.metrics[Metric::MeanMs.as_str()].point, i))
        .filter(|(mean, _)| mean.is_finite())
        .collect();
    fit.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (place, (_, i)) in fit.into_iter().enumerate() {
        strategies[i].rank = Some(place + 1);
    }
}

/// Means of the logs of a metric over runs, for comparisons between folders.
pub(crate) fn log_means(runs: &[&Run], metric: Metric) -> Vec<f64> {
    runs.iter()
        .map(|r| metric.of(r).ln())
        .filter(|v| v.is_finite())
        .collect()
}

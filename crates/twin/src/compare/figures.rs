//! What replications say of strategies: means with intervals, paired ratios to the baseline, claims.
//!
//! The statistic is the logarithm of a run's figure over the baseline's of the same seed. Student's t
//! gives its interval, a sign-flip test its p value, Holm corrects for the number of strategies. A claim
//! needs an adjusted p below .05 and a mean log-ratio beyond three standard errors. There is no A/A arm:
//! with the same seed a strategy gives the same run again, bit for bit.

use crate::output::{Interval, Paired, student};
use crate::tally::{Outcome, Verdict};
use evidence::{ALPHA, holm, sign_flip};
use serde::Serialize;
use strategies::Spec;

/// A claim needs a difference beyond so many standard errors.
const STANDARD_ERRORS: f64 = 3.0;
/// The gap that is closed lies between this strategy ..
const GAP_FROM: &str = "weighted-least-request";
/// .. and this one.
const GAP_TO: &str = "oracle-marginal";

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Mean,
    P50,
    P95,
    P99,
}

impl Metric {
    pub(super) const ALL: [Self; 4] = [Self::Mean, Self::P50, Self::P95, Self::P99];

    /// As JSON and CSV name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean_ms",
            Self::P50 => "p50_ms",
            Self::P95 => "p95_ms",
            Self::P99 => "p99_ms",
        }
    }

    /// All of a run, ms; none of an unstable one, or of one without a good answer.
    pub(super) fn all_of(outcome: &Outcome) -> Option<[f64; 4]> {
        if matches!(outcome.verdict, Verdict::Unstable { .. }) {
            return None;
        }
        let (mean, [p50, p95, p99]) = (outcome.mean?, outcome.quantiles?);
        Some([mean, p50, p95, p99].map(|s| s * 1e3))
    }
}

/// One strategy's runs, in the order of the seeds.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) spec: Spec,
    pub(super) runs: Vec<Option<[f64; 4]>>,
    pub(super) shares: Vec<f64>,
    pub(super) failed: u64,
    pub(super) doubtful: usize,
}

/// What the runs allow to say against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Claim {
    Faster,
    Slower,
}

/// A strategy against the baseline in one figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Difference {
    /// Strategy minus baseline, ms.
    pub(super) difference_ms: Interval,
    /// Logarithm of strategy over baseline.
    pub(super) log_ratio: Interval,
    pub(super) p: f64,
    pub(super) p_holm: f64,
}

/// All that is said of one strategy.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    pub(super) measured: Measured,
    /// By metric; none if some run was unstable.
    pub(super) metrics: Option<[Interval; 4]>,
    /// By metric; none for the baseline, and unless both are stable.
    pub(super) against: Option<[Difference; 4]>,
    pub(super) claim: Option<Claim>,
    /// 1 = smallest mean; none of an unstable strategy.
    pub(super) rank: Option<usize>,
    /// Share of the way from [`GAP_FROM`] to [`GAP_TO`]; none unless both are there, in this order.
    pub(super) gap_closed: Option<f64>,
}

impl Arm {
    /// Replications without figures.
    pub(super) fn unstable_runs(&self) -> usize {
        self.measured.runs.iter().filter(|r| r.is_none()).count()
    }
}

/// All strategies, the baseline first.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    pub(super) arms: Vec<Arm>,
}

impl Comparison {
    pub(super) fn of(measured: &[Measured]) -> Self {
        let mut arms: Vec<Arm> = measured.iter().map(arm).collect();
        for at in 1..arms.len() {
            arms[at].against = differences(&measured[0], &measured[at]);
        }
        adjust(&mut arms);
        for arm in &mut arms {
            arm.claim = arm.against.as_ref().and_then(|all| claim(&all[0]));
        }
        rank(&mut arms);
        close_gap(&mut arms);
        Self { arms }
    }
}

fn arm(measured: &Measured) -> Arm {
    let runs: Option<Vec<[f64; 4]>> = measured.runs.iter().copied().collect();
    let metrics = runs.and_then(|runs| {
        let interval = |m: usize| student(&runs.iter().map(|run| run[m]).collect::<Vec<_>>());
        Some([interval(0)?, interval(1)?, interval(2)?, interval(3)?])
    });
    Arm {
        measured: measured.clone(),
        metrics,
        against: None,
        claim: None,
        rank: None,
        gap_closed: None,
    }
}

fn differences(baseline: &Measured, other: &Measured) -> Option<[Difference; 4]> {
    let both = baseline.runs.iter().zip(&other.runs);
    let pairs: Option<Vec<_>> = both.map(|(a, b)| Some(((*a)?, (*b)?))).collect();
    let pairs = pairs?;
    let difference = |m: usize| {
        let mut paired = Paired::default();
        pairs.iter().for_each(|(a, b)| paired.add(a[m], b[m]));
        let logs = paired.log_ratios()?;
        Some(Difference {
            difference_ms: paired.difference()?,
            log_ratio: student(&logs)?,
            p: sign_flip(&logs),
            p_holm: f64::NAN,
        })
    };
    Some([
        difference(0)?,
        difference(1)?,
        difference(2)?,
        difference(3)?,
    ])
}

/// Holm over the strategies, figure by figure.
fn adjust(arms: &mut [Arm]) {
    for m in 0..Metric::ALL.len() {
        let mut found: Vec<&mut Difference> = arms
            .iter_mut()
            .filter_map(|arm| arm.against.as_mut().map(|all| &mut all[m]))
            .collect();
        let p: Vec<f64> = found.iter().map(|d| d.p).collect();
        for (difference, adjusted) in found.iter_mut().zip(holm(&p)) {
            difference.p_holm = adjusted;
        }
    }
}

fn claim(mean: &Difference) -> Option<Claim> {
    let Interval {
        mean: size,
        standard_error,
        ..
    } = mean.log_ratio;
    let is_beyond = size.abs() > STANDARD_ERRORS * standard_error;
    (mean.p_holm < ALPHA && is_beyond).then_some(if size < 0.0 {
        Claim::Faster
    } else {
        Claim::Slower
    })
}

fn rank(arms: &mut [Arm]) {
    let ranked = arms.iter().enumerate();
    let mut ranked: Vec<(f64, usize)> = ranked
        .filter_map(|(at, arm)| arm.metrics.map(|m| (m[0].mean, at)))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (place, (_, at)) in ranked.into_iter().enumerate() {
        arms[at].rank = Some(place + 1);
    }
}

fn close_gap(arms: &mut [Arm]) {
    let mean_of = |arms: &[Arm], name: &str| {
        let found = arms.iter().find(|a| a.measured.spec.to_string() == name)?;
        Some(found.metrics?[0].mean)
    };
    let (Some(from), Some(to)) = (mean_of(arms, GAP_FROM), mean_of(arms, GAP_TO)) else {
        return;
    };
    if from <= to {
        return;
    }
    for arm in arms {
        arm.gap_closed = arm.metrics.map(|m| (from - m[0].mean) / (from - to));
    }
}

/// Mean share of the picks of each worker.
pub(super) fn mean_shares(outcomes: &[Outcome]) -> Vec<f64> {
    let workers = outcomes.first().map_or(0, |o| o.shares.len());
    let share = |w: usize| outcomes.iter().map(|o| o.shares[w]).sum::<f64>();
    (0..workers)
        .map(|w| share(w) / outcomes.len() as f64)
        .collect()
}

//! The agreement table: what must be how near, and whether it is.
//!
//! The bounds are those a model of a queueing system is commonly asked for before it is believed:
//! the body of the distribution closely, its tail less so. A strategy whose picks follow from the
//! order of requests alone sends every request where the recorded run sent it, so that latencies can
//! be compared one by one; where answers steer, one different pick changes all later ones and only
//! the distributions can be.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Pair;
use super::distance::{kolmogorov_smirnov, spearman};
use crate::figures::intervals::{mean, quantile, variance};

/// Bounds on twin / real - 1.
const MEAN_BOUND: f64 = 0.05;
const QUANTILE_BOUNDS: [(&str, f64, f64); 3] = [
    ("p50_ms", 0.5, 0.05),
    ("p95_ms", 0.95, 0.10),
    ("p99_ms", 0.99, 0.15),
];
/// Bound on the difference of a worker's share.
const SHARE_BOUND: f64 = 0.02;
/// Least rank correlation of the latencies of single requests.
const LEAST_SPEARMAN: f64 = 0.9;
/// Largest distance of the distributions.
const KS_BOUND: f64 = 0.08;
/// Bound on the ratio of the standard deviations of run means, either way.
const SD_FACTOR: f64 = 2.0;
/// Runs that a standard deviation needs before it is judged.
const SD_RUNS: usize = 6;

/// Strategies whose picks follow from the order of requests, and whose gates decide the exit code.
const ORDER_ALONE: [&str; 2] = ["round-robin", "smooth-weighted-round-robin"];

/// How a strategy is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// Request by request; a missed gate fails the comparison.
    Requests,
    /// Distributions only; a missed gate is shown.
    Distributions,
}

impl Scope {
    /// That of a strategy by its canonical spelling.
    pub(crate) fn of(strategy: &str) -> Self {
        let name = strategy.split(':').next().unwrap_or_default();
        if ORDER_ALONE.contains(&name) {
            Self::Requests
        } else {
            Self::Distributions
        }
    }
}

/// What became of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// Too little to judge it.
    NotJudged,
}

impl Verdict {
    fn of(is_met: bool) -> Self {
        if is_met { Self::Met } else { Self::Missed }
    }

    /// As the table prints it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::NotJudged => "not judged",
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Line {
    pub(crate) quantity: String,
    /// Both sides, where the quantity is one of a side.
    pub(crate) real: Option<f64>,
    pub(crate) twin: Option<f64>,
    /// What the gate is about: a relative difference, a difference of shares, a statistic, a ratio.
    pub(crate) value: f64,
    /// The bound, in the unit of `value`.
    pub(crate) gate: f64,
    pub(crate) verdict: Verdict,
}

/// The lines of one arm, or of all arms of a strategy together; none without pairs.
pub(crate) fn lines(pairs: &[Pair], scope: Scope) -> Vec<Line> {
    if pairs.is_empty() {
        return Vec::new();
    }
    let real: Vec<f64> = pairs.iter().map(|p| p.real.latency_ms).collect();
    let twin: Vec<f64> = pairs.iter().map(|p| p.twin.latency_ms).collect();
    let mut lines = vec![relative("mean_ms", mean(&real), mean(&twin), MEAN_BOUND)];
    let (sorted_real, sorted_twin) = (sorted(&real), sorted(&twin));
    for (name, q, bound) in QUANTILE_BOUNDS {
        let (real, twin) = (quantile(&sorted_real, q), quantile(&sorted_twin, q));
        lines.push(relative(name, real, twin, bound));
    }
    lines.extend(shares(pairs));
    if scope == Scope::Requests {
        let rho = spearman(&real, &twin);
        lines.push(Line {
            quantity: "spearman".into(),
            real: None,
            twin: None,
            value: rho,
            gate: LEAST_SPEARMAN,
            verdict: Verdict::of(rho >= LEAST_SPEARMAN),
        });
    }
    let distance = kolmogorov_smirnov(&real, &twin);
    lines.push(Line {
        quantity: "ks_distance".into(),
        real: None,
        twin: None,
        value: distance,
        gate: KS_BOUND,
        verdict: Verdict::of(distance <= KS_BOUND),
    });
    lines
}

/// How much the means of whole runs spread, real against twin.
pub(crate) fn spread(real_means_ms: &[f64], twin_means_ms: &[f64]) -> Option<Line> {
    let runs = real_means_ms.len();
    if runs < 2 || twin_means_ms.len() != runs {
        return None;
    }
    let (real, twin) = (
        variance(real_means_ms).sqrt(),
        variance(twin_means_ms).sqrt(),
    );
    let ratio = twin / real;
    let verdict = if runs < SD_RUNS {
        Verdict::NotJudged
    } else {
        Verdict::of((1.0 / SD_FACTOR..=SD_FACTOR).contains(&ratio))
    };
    Some(Line {
        quantity: "sd_of_mean_ms".into(),
        real: Some(real),
        twin: Some(twin),
        value: ratio,
        gate: SD_FACTOR,
        verdict,
    })
}

fn relative(quantity: &str, real: f64, twin: f64, gate: f64) -> Line {
    let value = twin / real - 1.0;
    Line {
        quantity: quantity.into(),
        real: Some(real),
        twin: Some(twin),
        value,
        gate,
        verdict: Verdict::of(value.abs() <= gate),
    }
}

fn shares(pairs: &[Pair]) -> Vec<Line> {
    let workers: BTreeSet<&str> = pairs
        .iter()
        .flat_map(|p| [p.real.worker.as_str(), p.twin.worker.as_str()])
        .collect();
    let all = pairs.len() as f64;
    let share = |worker: &str| {
        let real = pairs.iter().filter(|p| p.real.worker == worker).count() as f64 / all;
        let twin = pairs.iter().filter(|p| p.twin.worker == worker).count() as f64 / all;
        Line {
            quantity: format!("share_{worker}"),
            real: Some(real),
            twin: Some(twin),
            value: twin - real,
            gate: SHARE_BOUND,
            verdict: Verdict::of((twin - real).abs() <= SHARE_BOUND),
        }
    };
    workers.into_iter().map(share).collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::{Line, Scope, Verdict, lines, spread};
    use crate::agreement::{Answer, Pair};

    fn answer(latency_ms: f64, worker: &str) -> Answer {
        Answer {
            latency_ms,
            worker: worker.into(),
            at_worker_ms: None,
        }
    }

    /// A thousand pairs of which the twin's latency is `of` the real one.
    fn pairs(of: impl Fn(f64) -> f64) -> Vec<Pair> {
        (0..1000)
            .map(|i| f64::from(i * 7919 % 1000) + 100.0)
            .map(|real| Pair {
                real: answer(real, "a"),
                twin: answer(of(real), "a"),
            })
            .collect()
    }

    fn line<'a>(lines: &'a [Line], quantity: &str) -> &'a Line {
        let found = lines.iter().find(|l| l.quantity == quantity);
        found.unwrap_or_else(|| panic!("no {quantity}"))
    }

    fn missed(lines: &[Line]) -> Vec<&str> {
        let missed = lines.iter().filter(|l| l.verdict == Verdict::Missed);
        missed.map(|l| l.quantity.as_str()).collect()
    }

    #[test]
    fn each_quantity_has_its_own_bound() {
        let of = |factor: f64| lines(&pairs(|ms| ms * factor), Scope::Requests);
        assert!(missed(&of(1.0)).is_empty());
        assert!(missed(&of(0.96)).is_empty());
        assert_eq!(missed(&of(1.06)), ["mean_ms", "p50_ms"]);
        // Of 100 .. 1099 the share above 0.89 times the largest is 12 %.
        let nearly = ["mean_ms", "p50_ms", "p95_ms", "ks_distance"];
        assert_eq!(missed(&of(0.89)), nearly);
        let far = of(1.2);
        let all = ["mean_ms", "p50_ms", "p95_ms", "p99_ms", "ks_distance"];
        assert_eq!(missed(&far), all);
        assert!((line(&far, "p99_ms").value - 0.2).abs() < 1e-12);
        assert_eq!(line(&far, "spearman").value, 1.0);
    }

    /// The same values for the wrong requests: only the comparison one by one tells.
    #[test]
    fn latencies_of_the_wrong_requests_are_no_agreement() {
        let turned = pairs(|ms| 1199.0 - ms);
        assert_eq!(missed(&lines(&turned, Scope::Requests)), ["spearman"]);
        assert!(missed(&lines(&turned, Scope::Distributions)).is_empty());
    }

    #[test]
    fn shares_are_compared_in_points() {
        let mut pairs = pairs(|ms| ms);
        pairs
            .iter_mut()
            .take(21)
            .for_each(|p| p.twin.worker = "b".into());
        let lines = lines(&pairs, Scope::Distributions);
        assert_eq!(missed(&lines), ["share_a", "share_b"]);
        assert!((line(&lines, "share_b").value - 0.021).abs() < 1e-12);
        assert!(super::lines(&[], Scope::Requests).is_empty());
    }

    /// Standard deviation of 1 .. 6 is sqrt(3.5).
    #[test]
    fn the_spread_of_runs_is_judged_from_six_runs_on() {
        let real = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let times = |k: f64| real.map(|x| k * x);
        let judged = |k: f64| spread(&real, &times(k)).expect("six runs");
        assert_eq!(judged(1.9).verdict, Verdict::Met);
        assert_eq!(judged(2.1).verdict, Verdict::Missed);
        assert_eq!(judged(0.4).verdict, Verdict::Missed);
        let sd = judged(1.0).real.expect("a side");
        assert!((sd - 3.5_f64.sqrt()).abs() < 1e-12);
        let few = spread(&real[..5], &times(9.0)[..5]).expect("five runs");
        assert_eq!(few.verdict, Verdict::NotJudged);
        assert_eq!(spread(&[1.0], &[1.0]), None);
    }

    #[test]
    fn only_strategies_that_go_by_order_are_compared_one_by_one() {
        assert_eq!(Scope::of("round-robin"), Scope::Requests);
        assert_eq!(Scope::of("smooth-weighted-round-robin"), Scope::Requests);
        assert_eq!(Scope::of("least-request:ties=random"), Scope::Distributions);
    }
}

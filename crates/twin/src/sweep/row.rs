//! One run as a line of CSV.

use crate::build::{Plan, worker_name};
use crate::tally::{Outcome, Verdict};

/// Column of the seed.
pub(crate) const SEED: &str = "seed";
/// Column of the verdict.
pub(crate) const VERDICT: &str = "verdict";
/// What it says of a run without a mean.
pub(crate) const UNSTABLE: &str = "unstable";

/// Columns after the axes; shares of the workers follow.
const RESULTS: [&str; 21] = [
    SEED,
    "requests",
    "load",
    "arrivals_per_poll",
    "mean_service_ms",
    VERDICT,
    "overloaded",
    "mean_ms",
    "half_width_ms",
    "mean_over_service",
    "slowdown",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "failed",
    "utilization_max",
    "utilization_min",
    "utilization_max_over_min",
    "jain",
    "duration_s",
    "measured",
];
/// Shares are given for at most so many workers: those that have letters for names.
const MAX_SHARES: usize = 26;

/// Columns of a result that tell runs apart without being an axis.
const DIMENSIONS: [&str; 3] = ["requests", "load", "arrivals_per_poll"];

/// Whether a column of a result tells runs apart; replications differ only in others.
pub(crate) fn is_dimension(column: &str) -> bool {
    let is_result = RESULTS.contains(&column) || column == "run" || column.starts_with("share_");
    DIMENSIONS.contains(&column) || !is_result
}

/// The columns of one sweep.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    axes: Vec<String>,
    /// Whether the strategy is no axis.
    has_strategy: bool,
    shares: usize,
}

impl Columns {
    pub(super) fn new(axes: Vec<&str>, workers: usize) -> Self {
        Self {
            axes: axes.iter().map(ToString::to_string).collect(),
            has_strategy: !axes.contains(&"strategy"),
            shares: workers.min(MAX_SHARES),
        }
    }

    fn names(&self) -> Vec<String> {
        let first = std::iter::once("run".to_string());
        let strategy = self.has_strategy.then(|| "strategy".to_string());
        let shares = (0..self.shares).map(|w| format!("share_{}", worker_name(w, self.shares)));
        first
            .chain(self.axes.iter().filter(|axis| !is_told(axis)).cloned())
            .chain(strategy)
            .chain(RESULTS.map(String::from))
            .chain(shares)
            .collect()
    }

    /// An axis that bears the name of a result, if any.
    pub(super) fn taken_twice(&self) -> Option<&str> {
        let names = self.names();
        let twice = |axis: &&String| names.iter().filter(|name| name == axis).count() > 1;
        self.axes.iter().find(twice).map(String::as_str)
    }

    /// The first line of the result.
    pub(super) fn header(&self) -> String {
        line_of(&self.names())
    }

    /// The line of one run; what it has not is empty.
    pub(super) fn line(
        &self,
        index: u64,
        labels: &[(&str, &str)],
        plan: &Plan,
        outcome: &Outcome,
    ) -> String {
        let mut fields = vec![index.to_string()];
        for axis in self.axes.iter().filter(|axis| !is_told(axis)) {
            let label = labels.iter().find(|(name, _)| name == axis);
            fields.push(label.map_or(String::new(), |(_, label)| (*label).to_string()));
        }
        if self.has_strategy {
            fields.push(plan.spec.to_string());
        }
        fields.extend(results(plan, outcome));
        let workers = outcome.shares.len();
        for w in 0..self.shares {
            let share = outcome.shares.get(w).filter(|_| workers <= MAX_SHARES);
            fields.push(share.map_or(String::new(), f64::to_string));
        }
        line_of(&fields)
    }
}

/// Whether the results tell it anyway, as the number that it is.
fn is_told(axis: &str) -> bool {
    ["load", "requests"].contains(&axis)
}

fn results(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let setup = &plan.setup;
    let number = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
    let (verdict, overloaded) = match outcome.verdict {
        Verdict::Stable => ("stable", None),
        Verdict::TooShort => ("too short", None),
        Verdict::Inconclusive { .. } => ("inconclusive", None),
        Verdict::Unstable { worker, .. } => (UNSTABLE, Some(worker)),
    };
    // An unstable run has no mean and no percentile.
    let shown = overloaded.is_none();
    let ms = |s: Option<f64>| number(s.filter(|_| shown).map(|s| s * 1e3));
    let mean = outcome.mean.filter(|_| shown);
    let quantile = |q: usize| ms(outcome.quantiles.map(|all| all[q]));
    let used = &outcome.utilizations;
    let most = used.iter().copied().fold(0.0, f64::max);
    let least = used.iter().copied().fold(f64::INFINITY, f64::min);
    vec![
        setup.seed.to_string(),
        outcome.requests.to_string(),
        number(plan.load),
        number(plan.arrivals_per_poll),
        (setup.mean_work * 1e3).to_string(),
        verdict.into(),
        overloaded.map_or(String::new(), |w| setup.workers[w].name.clone()),
        ms(mean),
        ms(outcome.half_width),
        number(mean.map(|mean| mean / setup.mean_work)),
        number(outcome.slowdown.filter(|_| shown)),
        quantile(0),
        quantile(1),
        quantile(2),
        outcome.failed.to_string(),
        most.to_string(),
        least.to_string(),
        number((least > 0.0).then(|| most / least)),
        number(jain(used)),
        outcome.duration.to_string(),
        outcome.measured.to_string(),
    ]
}

/// Jain's index of fairness: 1 if all are equal, 1/n if one has all; none of zeros.
fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|v| v * v).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Without its end.
fn line_of(fields: &[String]) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    // Writing to memory cannot fail, and bytes of strings are a string.
    let _ = writer.write_record(fields);
    let bytes = writer.into_inner().unwrap_or_default();
    let line = String::from_utf8(bytes).unwrap_or_default();
    line.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::{Columns, jain, line_of};

    #[test]
    fn jains_index_is_one_of_equals_and_one_nth_of_a_monopoly() {
        assert_eq!(jain(&[0.3; 4]), Some(1.0));
        assert_eq!(jain(&[0.0, 0.5, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0; 3]), None);
    }

    #[test]
    fn an_axis_may_not_bear_the_name_of_a_result() {
        let of = |axes| Columns::new(axes, 3);
        assert_eq!(of(vec!["pool", "strategy", "load"]).taken_twice(), None);
        assert_eq!(of(vec!["pool", "jain"]).taken_twice(), Some("jain"));
        assert_eq!(of(vec!["run"]).taken_twice(), Some("run"));
        let header = of(vec!["pool", "load"]).header();
        assert!(
            header.starts_with("run,pool,strategy,seed,requests,load,"),
            "{header}"
        );
        assert!(header.ends_with(",share_a,share_b,share_c"), "{header}");
    }

    #[test]
    fn commas_are_quoted() {
        let fields = ["1", "peak-ewma:decay=5s,choices=2"].map(String::from);
        assert_eq!(line_of(&fields), "1,\"peak-ewma:decay=5s,choices=2\"");
    }
}

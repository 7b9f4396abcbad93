//! How much of what an oracle gains over the baseline a strategy gains too, on mean latencies.

use super::Judged;
use super::rows::Run;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use strategies::Spec;

/// The baseline.
const BASELINE: &str = "weighted-least-request";
/// The oracle, whatever its parameters but a look-ahead.
const ORACLE: &str = "oracle-marginal";

/// What a run was asked to do: all due times and sizes. Equal for runs of one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Schedule(u64);

impl Schedule {
    pub(super) fn of(run: &Run) -> Self {
        let mut hash = DefaultHasher::new();
        for request in &run.requests {
            (request.intended_ns, request.size_mi.to_bits()).hash(&mut hash);
        }
        Self(hash.finish())
    }
}

/// (baseline - strategy) / (baseline - oracle) by strategy, over the schedules that all three ran.
/// Strategies without such a schedule, and all if the oracle gains nothing, are left out.
pub(super) fn closed(runs: &[Judged]) -> BTreeMap<&str, f64> {
    let oracle = runs
        .iter()
        .map(|r| r.strategy.as_str())
        .find(|s| is_oracle(s));
    let Some(oracle) = oracle else {
        return BTreeMap::new();
    };
    let mut by_schedule: BTreeMap<Schedule, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for run in runs {
        let of_schedule = by_schedule.entry(run.schedule).or_default();
        let means = of_schedule.entry(&run.strategy).or_default();
        means.extend(run.mean_ms);
    }
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for of_schedule in by_schedule.values() {
        let (Some(baseline), Some(best)) = (mean(of_schedule, BASELINE), mean(of_schedule, oracle))
        else {
            continue;
        };
        for strategy in of_schedule.keys() {
            if let Some(own) = mean(of_schedule, strategy) {
                let (gained, possible) = sums.entry(strategy).or_default();
                *gained += baseline - own;
                *possible += baseline - best;
            }
        }
    }
    sums.retain(|_, (_, possible)| *possible > 0.0);
    sums.into_iter()
        .map(|(s, (gained, possible))| (s, gained / possible))
        .collect()
}

fn mean(means: &BTreeMap<&str, Vec<f64>>, strategy: &str) -> Option<f64> {
    let list = means.get(strategy).filter(|list| !list.is_empty())?;
    Some(list.iter().sum::<f64>() / list.len() as f64)
}

/// An `aa:` label is the baseline's second run and no spelling of a strategy.
fn is_oracle(label: &str) -> bool {
    let spec: Option<Spec> = label.parse().ok();
    spec.is_some_and(|s| s.name() == ORACLE && s.decimal("look-ahead").is_none_or(|a| a == 0.0))
}

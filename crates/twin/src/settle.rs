//! A run and its verdict: one that is in doubt is repeated, longer, until it is settled.

use crate::build::{Plan, check_begun};
use crate::engine::{self, RunError, Source};
use crate::tally::{Outcome, Verdict};

/// The verdict on a run of which one sign of two says unstable is sought by so many more runs, each so
/// many times longer.
const LONGER_RUNS: u32 = 2;
const LONGER_BY: u64 = 4;

/// The outcome of a plan, its verdict settled.
///
/// # Errors
/// A pool that the strategy refuses; a violated invariant; a fault that was to begin after the end.
pub(crate) fn settled(plan: &Plan) -> anyhow::Result<Outcome> {
    let mut outcome = engine::run(&plan.setup, &plan.spec, &mut ())?;
    check_begun(&plan.setup, outcome.duration)?;
    outcome.verdict = settle(plan, &outcome)?;
    Ok(outcome)
}

/// The verdict, by longer runs while one of two signs says unstable; the figures stay those of the
/// run asked for. An offered load of all the capacity or more needs no sign.
fn settle(plan: &Plan, outcome: &Outcome) -> Result<Verdict, RunError> {
    let mut verdict = outcome.verdict;
    let mut setup = plan.setup.clone();
    if !matches!(setup.source, Source::Open { .. }) || setup.faults.is_some() {
        return Ok(verdict);
    }
    for _ in 0..LONGER_RUNS {
        if !matches!(verdict, Verdict::Inconclusive { .. }) {
            break;
        }
        setup.requests *= LONGER_BY;
        setup.warmup *= LONGER_BY;
        setup.size_drift = setup.size_drift.map(|(at, by)| (at * LONGER_BY, by));
        verdict = engine::run(&setup, &plan.spec, &mut ())?.verdict;
    }
    let is_beyond = plan.load.is_some_and(|load| load >= 1.0);
    Ok(match verdict {
        Verdict::Stable | Verdict::TooShort if is_beyond => Verdict::Unstable {
            drift_rps: 0.0,
            worker: fullest(plan, outcome),
        },
        settled => settled.at_last(),
    })
}

/// The worker with the most picks for its capacity.
fn fullest(plan: &Plan, outcome: &Outcome) -> usize {
    let workers = plan.setup.workers.iter().zip(&outcome.shares);
    let loads = workers.map(|(w, share)| share / (w.cores * w.speed));
    let most = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
    loads.enumerate().fold((0, 0.0), most).0
}

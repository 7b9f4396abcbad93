//! Figures of made-up runs, and that threads change nothing.

use super::figures::{Claim, Comparison, Measured};
use crate::build::Plan;
use schema::scenario::Scenario;
use strategies::registry::Models;

fn arm(strategy: &str, means: &[f64]) -> Measured {
    Measured {
        spec: strategy.parse().expect("a strategy"),
        runs: means
            .iter()
            .map(|m| (*m > 0.0).then_some([*m; 4]))
            .collect(),
        shares: vec![1.0],
        failed: 0,
        doubtful: 0,
    }
}

fn times(means: &[f64], by: f64) -> Vec<f64> {
    means.iter().map(|m| m * by).collect()
}

const BASE: [f64; 8] = [10.0, 12.0, 9.0, 11.0, 13.0, 8.0, 10.5, 11.5];

#[test]
fn a_claim_needs_a_small_p_and_three_standard_errors() {
    let exact = arm("random", &times(&BASE, 0.9));
    let same = arm("p2c", &BASE);
    // All eight differences are negative, but one of them carries the mean.
    let mut wild = times(&BASE, 0.999);
    wild[0] *= 0.5;
    let wild = arm("jiq", &wild);
    let base = arm("round-robin", &BASE);
    let comparison = Comparison::of(&[base, exact, same, wild]);
    let claims: Vec<_> = comparison.arms.iter().map(|a| a.claim).collect();
    assert_eq!(claims, [None, Some(Claim::Faster), None, None]);
    let of = |at: usize| comparison.arms[at].against.clone().expect("a difference")[0].clone();
    assert!((of(1).log_ratio.mean - libm::log(0.9)).abs() < 1e-12);
    // The smallest p of eight pairs, and three strategies compared.
    assert_eq!((of(1).p, of(1).p_holm), (2.0 / 256.0, 6.0 / 256.0));
    assert_eq!((of(2).p, of(2).p_holm), (1.0, 1.0));
    assert_eq!(of(3).p_holm, 6.0 / 256.0);
    let ranks: Vec<_> = comparison.arms.iter().map(|a| a.rank).collect();
    assert_eq!(ranks, [Some(3), Some(1), Some(4), Some(2)]);
}

#[test]
fn one_unstable_run_leaves_a_strategy_without_mean_rank_and_claim() {
    let mut some = times(&BASE, 0.5);
    some[3] = 0.0;
    let comparison = Comparison::of(&[arm("round-robin", &BASE), arm("random", &some)]);
    let arm_of = &comparison.arms[1];
    assert!(arm_of.metrics.is_none() && arm_of.rank.is_none() && arm_of.claim.is_none());
    assert_eq!(
        (arm_of.unstable_runs(), comparison.arms[0].rank),
        (1, Some(1))
    );
    let comparison = Comparison::of(&[arm("random", &some), arm("round-robin", &BASE)]);
    assert!(comparison.arms[1].against.is_none() && comparison.arms[1].metrics.is_some());
}

#[test]
fn the_gap_is_closed_from_live_counts_to_the_oracle() {
    let arms = |last: &str| {
        [
            arm("weighted-least-request", &BASE),
            arm("wl-mc", &times(&BASE, 0.94)),
            arm(last, &times(&BASE, 0.9)),
            arm("round-robin", &times(&BASE, 1.1)),
        ]
    };
    let gaps = |arms: &[Measured]| -> Vec<Option<f64>> {
        let rounded = |gap: f64| (gap * 1e9).round() / 1e9;
        let arms = Comparison::of(arms).arms.into_iter();
        arms.map(|a| a.gap_closed.map(rounded)).collect()
    };
    let expected = [Some(0.0), Some(0.6), Some(1.0), Some(-1.0)];
    assert_eq!(gaps(&arms("oracle-marginal")), expected);
    assert_eq!(gaps(&arms("oracle-own")), [None; 4]);
    let mut none = arms("oracle-marginal");
    none[2] = arm("oracle-marginal", &times(&BASE, 1.01));
    assert_eq!(gaps(&none), [None; 4]);
}

#[test]
fn any_number_of_threads_gives_the_same_outcomes_in_the_same_order() {
    let plan = |strategy: &str| {
        let scenario = Scenario {
            strategy: Some(strategy.into()),
            requests: Some(3000),
            ..Scenario::default()
        };
        Plan::new(&scenario, None, Models::default()).expect("a plan")
    };
    let plans = ["random", "p2c", "weighted-least-request"].map(plan);
    let seeds = [1, 2, 7, 8, 9];
    let replicate = |threads| super::replicate(3, |at, _| Ok(plans[at].clone()), &seeds, threads);
    let one = replicate(1).expect("runs");
    assert_eq!(one, replicate(2).expect("runs"));
    assert_eq!(one, replicate(5).expect("runs"));
    assert!(one.len() == 3 && one.iter().all(|outcomes| outcomes.len() == 5));
    assert_ne!(one[0][0], one[0][1]);
}

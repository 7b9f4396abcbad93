use schema::row::Row;

use super::{LATE_BURNS, LateBurns, Summary};
use crate::bench::testing::manifest;
use crate::plan::order;

const NOTE: &str = "workers burned late in 2 of 3 runs (worst 4.0 % of the answers)";

/// Four arms of which three have rows; `late` are marked with their share of late burns.
fn summary(late: &[(usize, f64)]) -> Summary {
    let arms = order::arms("t", &["round-robin".to_string()], 2, 1);
    let mut manifest = manifest(arms);
    for (i, share) in late {
        let arm = &mut manifest.arms[*i];
        arm.flags.push(LATE_BURNS.into());
        arm.late_burn_share = Some(*share);
    }
    let row = |arm: usize, seq: u64| Row {
        run_id: manifest.arms[arm].run_id.clone(),
        block: Some(manifest.arms[arm].block),
        strategy: manifest.arms[arm].label.clone(),
        seq,
        intended_ns: seq * 10_000_000,
        sent_ns: Some(seq * 10_000_000),
        latency_ms: Some(50.0),
        ..Row::default()
    };
    let rows: Vec<Row> = (0..3)
        .flat_map(|arm| (0..20).map(move |seq| (arm, seq)))
        .map(|(arm, seq)| row(arm, seq))
        .collect();
    Summary::of(&manifest, &rows)
}

#[test]
fn runs_with_late_burns_are_counted_and_the_worst_is_named() {
    let found = summary(&[(0, 0.0125), (2, 0.04), (3, 0.5)]);
    let expected = LateBurns {
        runs: 2,
        worst_share: 0.04,
    };
    assert_eq!(
        found.late_burns,
        Some(expected),
        "an arm without rows is no run"
    );
    assert!(found.text().contains(NOTE), "{}", found.text());
}

#[test]
fn without_late_burns_nothing_is_said() {
    let found = summary(&[]);
    assert_eq!(found.late_burns, None);
    assert!(!found.text().contains("burned late"), "{}", found.text());
}

#[test]
fn a_result_that_is_not_valid_claims_nothing_and_says_so() {
    let arms = || order::arms("t", &["round-robin".into()], 2, 1);
    let fine = Summary::of(&manifest(arms()), &[]);
    assert!(fine.claims && !fine.text().contains("NOT VALID"));
    let mut spoiled = arms();
    spoiled[1].flags.push("generator_saturated".into());
    spoiled[2].mismatches.push("R1: 10 rows, 9 sent".into());
    let summary = Summary::of(&manifest(spoiled), &[]);
    assert!(!summary.claims && summary.not_valid.len() == 2);
    assert!(summary.text().contains("NOT VALID") && summary.text().contains("R1: 10 rows"));
}

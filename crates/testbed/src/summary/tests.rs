use schema::row::Row;

use super::{LATE_BURNS, LateBurns, Summary};
use crate::bench::testing::manifest;
use crate::figures::comparison::Claim;
use crate::plan::order;

const NOTE: &str = "workers burned late in 2 of 3 runs (worst 4.0 % of the answers waited for it)";

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
    let text = summary.text();
    assert!(text.contains("NOT VALID") && text.contains("10 rows, 9 sent"));
    assert!(text.find("NOT VALID") < text.find("mean ms"), "{text}");
}

/// Seven blocks in which `fast` takes four fifths of the time; `edit` may spoil the manifest.
fn seven_blocks(edit: impl Fn(&mut schema::manifest::Manifest)) -> Summary {
    let labels = ["round-robin".to_string(), "fast".to_string()];
    let mut manifest = manifest(order::arms("t", &labels, 7, 1));
    manifest.strategies = labels.to_vec();
    edit(&mut manifest);
    let mut rows = Vec::new();
    for arm in &manifest.arms {
        let factor = if arm.label == "fast" { 0.8 } else { 1.0 };
        // The A/A arm is a thousandth off, one way and the other.
        let noise = match (arm.label.starts_with("aa:"), arm.block % 2) {
            (true, 0) => 1.001,
            (true, _) => 0.999,
            _ => 1.0,
        };
        rows.extend((0..20).map(|seq| Row {
            run_id: arm.run_id.clone(),
            block: Some(arm.block),
            strategy: arm.label.clone(),
            seq,
            intended_ns: seq * 10_000_000,
            sent_ns: Some(seq * 10_000_000),
            latency_ms: Some(50.0 * factor * noise),
            ..Row::default()
        }));
    }
    Summary::of(&manifest, &rows)
}

#[test]
fn without_claims_there_is_no_rank_and_no_difference_but_every_figure() {
    let fine = seven_blocks(|_| ());
    let fast = |s: &Summary| s.comparison.strategies[1].clone();
    assert_eq!(fast(&fine).claim, Some(Claim::Faster));
    assert_eq!(fast(&fine).rank, Some(1));
    assert!(fine.text().contains("mean / round-robin"));
    let saturated = |m: &mut schema::manifest::Manifest| {
        m.arms[3].flags.push("generator_saturated".into());
    };
    let smoke = |m: &mut schema::manifest::Manifest| m.preset = "smoke".into();
    for (spoiled, marked) in [
        (seven_blocks(saturated), true),
        (seven_blocks(smoke), false),
    ] {
        let text = spoiled.text();
        for strategy in &spoiled.comparison.strategies {
            assert_eq!((strategy.rank, strategy.claim), (None, None));
            assert!(strategy.against_baseline.is_empty());
        }
        assert_eq!(text.contains("NOT VALID"), marked);
        assert!(
            !text.contains("faster") && !text.contains("mean /"),
            "{text}"
        );
        assert!(text.contains("40.00") && text.contains("50.00"), "{text}");
        assert!(text.contains("95 %: none"), "{text}");
    }
}

#[test]
fn the_reasons_of_failures_are_counted_in_the_footer() {
    let arms = order::arms("t", &["round-robin".to_string()], 1, 1);
    let manifest = manifest(arms);
    let errors = [
        "timeout",
        "error:connect_refused",
        "error:connect_refused",
        "",
    ];
    let rows: Vec<Row> = errors
        .iter()
        .zip(0..)
        .map(|(error, seq)| Row {
            run_id: manifest.arms[0].run_id.clone(),
            block: Some(1),
            strategy: manifest.arms[0].label.clone(),
            seq,
            error: (*error).into(),
            latency_ms: Some(1.0),
            ..Row::default()
        })
        .collect();
    let text = Summary::of(&manifest, &rows).text();
    let note = "75.00 % of the requests failed, which no latency shows: \
                2 error:connect_refused, 1 timeout (in ";
    assert!(text.contains(note), "{text}");
}

#[test]
fn one_block_says_why_it_has_no_interval() {
    assert!(seven_blocks(|_| ()).text().find("95 %: needs").is_none());
    let text = summary(&[]).text();
    assert!(text.contains("95 %: needs at least 2 blocks"), "{text}");
}

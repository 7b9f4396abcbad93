use schema::row::Row;

use super::comparison::{Claim, Comparison};
use super::run::{Outcome, Run};
use super::stability::{Word, judge};

/// A run of 1,000 requests every 10 ms; `latency` gives request i's latency in ms.
fn rows(label: &str, block: u32, latency: impl Fn(u64) -> f64) -> Vec<Row> {
    (0..1000)
        .map(|seq| {
            let intended_ns = seq * 10_000_000;
            let done_ns = intended_ns + (latency(seq) * 1e6) as u64;
            Row {
                run_id: format!("{label}-{block}"),
                block: Some(block),
                strategy: label.to_string(),
                seq,
                task_size_mi: 412.0,
                warmup: seq < 200,
                intended_ns,
                sent_ns: Some(intended_ns + 50_000),
                done_ns: Some(done_ns),
                latency_ms: Some(Row::latency_ms(intended_ns, done_ns)),
                status: Some(200),
                container: Some(["a", "b", "c"][seq as usize % 3].to_string()),
                cores: Some([4.0, 3.0, 2.0][seq as usize % 3]),
                ..Row::default()
            }
        })
        .collect()
}

fn run(label: &str, block: u32, latency: impl Fn(u64) -> f64) -> Run {
    let rows = rows(label, block, latency);
    Run::summarize(&rows.iter().collect::<Vec<_>>(), 7450.0).expect("rows")
}

#[test]
fn a_run_counts_what_follows_the_warm_up() {
    let run = run("round-robin", 1, |seq| if seq < 200 { 1e4 } else { 100.0 });
    assert_eq!((run.rows, run.warmup_rows), (800, 200));
    assert_eq!(run.count(Outcome::Ok), 800);
    assert!((run.mean_ms - 100.0).abs() < 1e-9 && (run.p99_ms - 100.0).abs() < 1e-9);
    assert!((run.throughput_mi_per_ms - 4.12).abs() < 1e-9);
    // From 2.0 s (first due) to 9.99 s + 0.1 s (last end).
    assert!((run.completed_rps - 800.0 / 8.09).abs() < 1e-9);
    assert!((run.shares["a"] - 267.0 / 800.0).abs() < 1e-9);
    assert!(!run.late && (run.lateness_p99_ms - 0.05).abs() < 1e-9);
}

#[test]
fn outcomes_other_than_ok_are_counted_and_leave_latency_alone() {
    let mut rows = rows("r", 1, |_| 100.0);
    rows[500].error = "error:no_backend".into();
    rows[501].error = "timeout".into();
    rows[502].error = "never_sent:max_in_flight".into();
    rows[500].latency_ms = Some(9e9);
    let run = Run::summarize(&rows.iter().collect::<Vec<_>>(), 7450.0).expect("rows");
    let counts = Outcome::ALL.map(|o| run.count(o));
    assert_eq!(counts, [797, 1, 1, 0, 1]);
    assert!((run.mean_ms - 100.0).abs() < 1e-9);
}

#[test]
fn a_steady_run_is_stable_and_a_growing_one_beyond_capacity_is_not() {
    let steady = rows("r", 1, |_| 100.0);
    let verdict = judge(&steady.iter().collect::<Vec<_>>(), 7450.0);
    assert_eq!(verdict.word, Word::Stable, "{verdict:?}");
    assert_eq!(verdict.worker, "c");
    // 33.3 requests a second of 412 MI on two cores of 7,450 MIPS.
    assert!((verdict.worker_load - 0.922).abs() < 0.01, "{verdict:?}");

    let growing = rows("r", 1, |seq| 50.0 + seq as f64);
    let verdict = judge(&growing.iter().collect::<Vec<_>>(), 5000.0);
    assert_eq!(verdict.word, Word::Unstable, "{verdict:?}");
    assert_eq!(verdict.reasons.len(), 2);

    let few = &steady[..150];
    let verdict = judge(&few.iter().collect::<Vec<_>>(), 7450.0);
    assert_eq!(verdict.word, Word::Unknown);
}

#[test]
fn a_clear_difference_beyond_the_noise_floor_is_claimed_and_an_unclear_one_is_not() {
    let mut runs = Vec::new();
    for block in 1..=7_u32 {
        let drift = 100.0 + f64::from(block);
        let noise = if block % 2 == 0 { 1.004 } else { 0.997 };
        runs.push(run("round-robin", block, |_| drift));
        runs.push(run("aa:round-robin", block, |_| drift * noise));
        runs.push(run("least-request", block, |_| drift * 0.9));
        runs.push(run("random", block, |_| drift * noise * 1.0005));
    }
    let labels = ["round-robin", "least-request", "random"].map(String::from);
    let comparison = Comparison::of(&runs, &labels);
    assert_eq!((comparison.blocks, comparison.blocks_needed), (7, 7));
    let by_label = |label: &str| {
        let found = comparison.strategies.iter().find(|s| s.label == label);
        found.expect("strategy").clone()
    };
    let better = by_label("least-request");
    let difference = &better.against_baseline["mean_ms"];
    assert!((difference.ratio.point - 0.9).abs() < 1e-6);
    assert!((difference.p - 1.0 / 64.0).abs() < 1e-12);
    assert!((difference.p_holm - 1.0 / 32.0).abs() < 1e-12);
    assert_eq!((better.claim, better.rank), (Some(Claim::Faster), Some(1)));
    assert_eq!(by_label("random").claim, None);
    let aa = by_label("aa:round-robin");
    assert!(aa.aa && aa.rank.is_none() && aa.claim.is_none());
    assert!(by_label("round-robin").against_baseline.is_empty());
}

#[test]
fn a_strategy_with_an_unstable_run_has_no_mean_and_no_rank() {
    let mut runs: Vec<Run> = (1..=2).map(|b| run("round-robin", b, |_| 100.0)).collect();
    let growing = rows("random", 1, |seq| 50.0 + 2.0 * seq as f64);
    let growing: Vec<&Row> = growing.iter().collect();
    runs.push(Run::summarize(&growing, 5000.0).expect("rows"));
    let labels = ["round-robin", "random"].map(String::from);
    let comparison = Comparison::of(&runs, &labels);
    let random = &comparison.strategies[1];
    assert!(random.flagged && random.rank.is_none());
    assert!(random.metrics["mean_ms"].point.is_nan());
    assert!(random.against_baseline.is_empty());
}

/// Seven blocks of a baseline at 100 ms with its A/A arm, and of `random` at 10 ms whose first
/// `failed` measured requests of each run end at once with an error.
fn fast_failing(failed: usize, baseline_failed: usize) -> Comparison {
    let mut runs = Vec::new();
    let mut add = |label: &str, block: u32, latency_ms: f64, failed: usize| {
        let mut rows = rows(label, block, |_| latency_ms);
        for row in &mut rows[200..200 + failed] {
            row.error = "error:503".into();
            row.latency_ms = Some(1.0);
        }
        runs.push(Run::summarize(&rows.iter().collect::<Vec<_>>(), 7450.0).expect("rows"));
    };
    for block in 1..=7_u32 {
        let drift = 100.0 + f64::from(block);
        let noise = if block % 2 == 0 { 1.004 } else { 0.997 };
        add("round-robin", block, drift, baseline_failed);
        add("aa:round-robin", block, drift * noise, baseline_failed);
        add("random", block, drift / 10.0, failed);
    }
    Comparison::of(&runs, &["round-robin", "random"].map(String::from))
}

#[test]
fn an_arm_that_fails_fast_is_not_called_fast() {
    let fine = fast_failing(0, 0);
    assert_eq!(fine.strategies[1].claim, Some(Claim::Faster));
    assert_eq!(fine.strategies[1].rank, Some(1));
    // One in a hundred and more; then far fewer, but none of the baseline's.
    for failed in [400, 9, 1] {
        let found = fast_failing(failed, 0);
        let random = &found.strategies[1];
        assert!(random.failing, "{failed}");
        assert_eq!((random.claim, random.rank), (None, None), "{failed}");
        assert!(random.against_baseline.is_empty(), "{failed}");
        assert!((random.failed_share - failed as f64 / 800.0).abs() < 1e-12);
        assert_eq!(found.strategies[0].rank, Some(1));
    }
}

#[test]
fn arms_that_fail_alike_and_rarely_are_compared() {
    let found = fast_failing(2, 2);
    assert!(found.strategies.iter().all(|s| !s.failing));
    assert_eq!(found.strategies[1].claim, Some(Claim::Faster));
}

#[test]
fn nothing_is_compared_with_a_baseline_that_fails() {
    let found = fast_failing(0, 400);
    assert!(found.strategies[0].failing && found.strategies[0].rank.is_none());
    let random = &found.strategies[1];
    assert!(!random.failing && random.claim.is_none());
    assert!(random.against_baseline.is_empty());
    assert_eq!(random.rank, Some(1));
}

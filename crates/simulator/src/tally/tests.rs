use super::{Facts, Summary, Tally, rank};
use crate::outcome::{Fate, Head, Outcome};

const MS: u64 = 1_000_000;

fn outcome(seq: usize, late_ns: u64, latency_ns: u64, fate: Fate) -> Outcome {
    let intended_ns = seq as u64 * 10 * MS;
    Outcome {
        seq,
        intended_ns,
        sent_ns: Some(intended_ns + late_ns),
        first_byte_ns: None,
        done_ns: Some(intended_ns + latency_ns),
        head: Some(Box::new(Head {
            status: 200,
            container: Some(if seq.is_multiple_of(4) { "a" } else { "b" }.into()),
            ..Head::default()
        })),
        fate,
    }
}

fn facts(lag_bound_ns: u64) -> Facts {
    Facts {
        run_id: "r".into(),
        strategy: None,
        workload_sha256: String::new(),
        scheduled: 200,
        lag_bound_ns,
        interrupted: false,
        aborted: None,
        started_unix_ns: 1,
        max_in_flight: 10,
        connections_opened: 1,
        closed_loop: None,
        actions: None,
    }
}

/// 200 requests of which the three latest lie `above` the bound of 1 ms or just below it.
fn run_with_late_ones(late_ns: u64, late: usize) -> Summary {
    let mut tally = Tally::new(0);
    for seq in 0..200 {
        let late_ns = if seq < late { late_ns } else { 10_000 };
        tally.add(&outcome(seq, late_ns, 50 * MS, Fate::Ok));
    }
    tally.summarize(facts(MS), None)
}

#[test]
fn saturation_is_flagged_just_above_the_bound_and_not_at_it() {
    assert!(run_with_late_ones(MS + 1, 3).generator_saturated);
    assert!(!run_with_late_ones(MS, 3).generator_saturated);
    // Two of 200 are one percent: the 99th percentile sees a hundredth of the way to them.
    assert!(!run_with_late_ones(90 * MS, 2).generator_saturated);
}

#[test]
fn a_request_never_sent_saturates_unless_the_run_was_stopped() {
    let summary = |why| {
        let mut tally = Tally::new(1);
        tally.add(&Outcome::never_sent(0, 0, why));
        tally.add(&outcome(1, 0, 50 * MS, Fate::Ok));
        tally.summarize(facts(MS), None)
    };
    assert!(summary("max_in_flight").generator_saturated);
    assert!(!summary("interrupted").generator_saturated);
}

#[test]
fn lateness_of_the_warm_up_does_not_count() {
    let mut tally = Tally::new(100);
    for seq in 0..200 {
        let late_ns = if seq < 100 { 900 * MS } else { 10_000 };
        tally.add(&outcome(seq, late_ns, 50 * MS, Fate::Ok));
    }
    let summary = tally.summarize(facts(MS), None);
    assert!(!summary.generator_saturated);
    assert_eq!(summary.lateness_max_us, Some(10.0));
}

#[test]
fn latency_is_of_ok_rows_after_the_warmup_and_outcomes_are_counted_apart() {
    let mut tally = Tally::new(2);
    tally.add(&outcome(0, 0, 900 * MS, Fate::Ok));
    tally.add(&outcome(1, 0, 900 * MS, Fate::Ok));
    tally.add(&outcome(2, 0, 10 * MS, Fate::Ok));
    tally.add(&outcome(3, 0, 30 * MS, Fate::Ok));
    tally.add(&outcome(
        4,
        0,
        500 * MS,
        Fate::Error("connect_refused".into()),
    ));
    tally.add(&outcome(5, 0, 500 * MS, Fate::Timeout));
    tally.add(&outcome(6, 0, 500 * MS, Fate::Cancelled));
    tally.add(&Outcome::never_sent(7, 70 * MS, "max_in_flight"));
    let summary = tally.summarize(facts(MS), None);
    let counts = (
        summary.rows,
        summary.ok,
        summary.error,
        summary.timeout,
        summary.cancelled,
        summary.never_sent,
    );
    assert_eq!(counts, (8, 4, 1, 1, 1, 1));
    let latency = summary.latency.clone().expect("two ok rows");
    assert!((latency.mean_ms - 20.0).abs() < 1e-9);
    assert!((latency.p50_ms - 10.0).abs() < 1e-9);
    assert_eq!(summary.reasons["error:connect_refused"], 1);
    assert_eq!(summary.reasons["never_sent:max_in_flight"], 1);
    assert!((summary.shares["a"] - 0.2).abs() < 1e-9);
    assert!(summary.preview().contains("8 rows of 200 scheduled"));
}

#[test]
fn quantiles_are_nearest_ranks() {
    let values: Vec<u64> = (1..=100).collect();
    assert_eq!(rank(&values, 0.5), Some(50));
    assert_eq!(rank(&values, 0.99), Some(99));
    assert_eq!(rank(&values, 1.0), Some(100));
    assert_eq!(rank(&[7], 0.5), Some(7));
    assert_eq!(rank(&[], 0.5), None);
}

use super::{Counts, Ledger};
use crate::engine::{Done, Totals};

fn done(latency_ms: f64, at_s: f64) -> Done {
    let ended_ns = at_s * 1e9;
    Done {
        arrived_ns: ended_ns - latency_ms * 1e6,
        started_ns: ended_ns - latency_ms * 0.5e6,
        ended_ns,
        late_burn: false,
    }
}

fn close(got: Option<f64>, expected: f64) -> bool {
    got.is_some_and(|got| (got - expected).abs() < 1e-6)
}

#[test]
fn a_mean_of_nothing_is_none_and_of_many_that_of_the_last_fifty() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.mean_latency_ms(), None);
    for i in 0..60 {
        let held = ledger.arrive();
        ledger.complete(held, &done(f64::from(i), 100.0));
    }
    // 10..=59
    assert!(close(ledger.mean_latency_ms(), 34.5));
    assert!(close(ledger.mean_service_ms(), 17.25));
}

#[test]
fn every_change_of_the_counts_moves_the_sequence() {
    let mut ledger = Ledger::default();
    let held = ledger.arrive();
    ledger.arrive();
    ledger.complete(held, &done(1.0, 1.0));
    ledger.abort();
    ledger.refuse();
    assert_eq!((ledger.sequence(), ledger.active()), (5, 0));
    let counts = Counts {
        completed: 1,
        failed: 1,
        aborted: 1,
        late_burns: 0,
    };
    assert_eq!(ledger.counts(), counts);
}

#[test]
fn a_reset_clears_counts_and_window_and_keeps_what_is_held() {
    let mut ledger = Ledger::default();
    let held = ledger.arrive();
    ledger.complete(held, &done(1.0, 1.0));
    ledger.arrive();
    ledger.reset();
    assert_eq!(ledger.counts(), Counts::default());
    assert_eq!((ledger.mean_latency_ms(), ledger.active()), (None, 1));
}

#[test]
fn rif_latency_is_the_median_of_those_that_arrived_at_a_like_number() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.rif_latency_ms(0.0), None);
    for i in 0..40 {
        ledger.arrive();
        let (held, latency_ms) = if i % 2 == 0 { (0, 10.0) } else { (9, 90.0) };
        ledger.complete(held, &done(latency_ms, 100.0));
    }
    assert!(close(ledger.rif_latency_ms(101e9), 10.0));
    for _ in 0..8 {
        ledger.arrive();
    }
    assert!(close(ledger.rif_latency_ms(101e9), 90.0));
    // Older than 5 s: the old ones serve for want of newer ones.
    assert!(close(ledger.rif_latency_ms(200e9), 90.0));
    ledger.complete(8, &done(7.0, 199.0));
    assert!(close(ledger.rif_latency_ms(200e9), 7.0));
}

#[test]
fn rates_are_those_of_the_last_second() {
    let totals = |busy_s: f64, work_s: f64| Totals {
        busy_core_ns: busy_s * 1e9,
        work_core_ns: work_s * 1e9,
    };
    let mut ledger = Ledger::default();
    ledger.keep(ledger.sample(0.0, 0, totals(0.0, 0.0)));
    for _ in 0..10 {
        let held = ledger.arrive();
        ledger.complete(held, &done(1.0, 0.5));
    }
    let early = ledger.sample(0.5e9, 250_000_000, totals(0.5, 0.5));
    let rates = ledger.rates(&early, 2.0);
    assert_eq!((rates.qps, rates.cpu_percent), (20.0, None));
    ledger.keep(ledger.sample(1.0e9, 500_000_000, totals(1.0, 1.0)));
    ledger.refuse();
    let rates = ledger.rates(&ledger.sample(2.0e9, 1_000_000_000, totals(2.0, 1.8)), 2.0);
    assert_eq!((rates.utilization, rates.qps, rates.eps), (0.5, 0.0, 1.0));
    assert!(close(rates.speed, 0.8) && close(rates.cpu_percent, 50.0));
    let idle = ledger.sample(2.0e9, 0, totals(1.0, 1.0));
    assert_eq!(ledger.rates(&idle, 2.0).speed, None);
}

//! What a change of units, order or representation must leave alone.

use super::super::{Delay, Path, Setup, Source};
use super::{outcome, record, setup};
use crate::station::Model;
use schema::laws::sizes::SizeLaw;

/// All times and sizes multiplied.
fn scaled(setup: &Setup, by: f64) -> Setup {
    let mut scaled = setup.clone();
    scaled.mean_work *= by;
    scaled.classes.iter_mut().for_each(|c| c.mean_work *= by);
    scaled.polls.interval *= by;
    scaled.polls.fetch *= by;
    scaled.network = Delay::Constant(setup.network.mean() * by);
    if let Source::Open { rate_rps, .. } = &mut scaled.source {
        *rate_rps /= by;
    }
    scaled
}

#[test]
fn another_unit_of_time_changes_no_pick() {
    let mut base = setup(0.8, 20_000);
    base.polls.fetch = 0.125;
    base.network = Delay::Constant(0.0625);
    for strategy in [
        "weighted-least-request",
        "polled-own-sends",
        "jiq",
        "d-choices:d=2",
    ] {
        let (one, _) = record(&base, strategy, Path::Inline);
        let (eight, _) = record(&scaled(&base, 8.0), strategy, Path::Inline);
        let (ten, _) = record(&scaled(&base, 10.0), strategy, Path::Inline);
        for ((a, b), c) in one.0.iter().zip(&eight.0).zip(&ten.0) {
            assert_eq!((a.seq, a.worker), (b.seq, b.worker), "{strategy}");
            assert!(a.arrived * 8.0 == b.arrived && a.finished * 8.0 == b.finished);
            assert_eq!((a.seq, a.worker), (c.seq, c.worker), "{strategy}");
            assert!((a.finished * 10.0 - c.finished).abs() < 1e-9 * c.finished);
        }
    }
}

#[test]
fn the_order_of_workers_changes_no_law() {
    let base = setup(0.8, 200_000);
    let mut turned = base.clone();
    turned.workers.rotate_left(1);
    for strategy in ["weighted-least-request", "weighted-random", "p2c"] {
        let (a, b) = (outcome(&base, strategy), outcome(&turned, strategy));
        let error = a
            .half_width
            .expect("enough")
            .hypot(b.half_width.expect("enough"));
        let (a_mean, b_mean) = (a.mean.expect("some"), b.mean.expect("some"));
        assert!(
            (a_mean - b_mean).abs() < 2.0 * error,
            "{strategy}: {a_mean} {b_mean}"
        );
        // Four standard errors of a share of 180,000 picks, were they independent, twice.
        assert!((a.shares[0] - b.shares[2]).abs() < 0.01, "{strategy}");
    }
}

#[test]
fn a_board_of_no_age_is_the_live_count() {
    let mut live = setup(0.8, 20_000);
    live.polls.interval = 0.0;
    let (board, _) = record(&live, "polled-least-request", Path::Inline);
    let (own, _) = record(&live, "weighted-least-request", Path::Inline);
    assert!(board == own);
    // And a board of some age is not.
    let (old, _) = record(&setup(0.8, 20_000), "polled-least-request", Path::Inline);
    assert!(old != own);
}

#[test]
fn choosing_among_all_is_joining_the_shortest() {
    let base = setup(0.8, 400_000);
    let all = outcome(&base, "d-choices:d=3");
    let shortest = outcome(&base, "least-request:ties=random");
    let (a, b) = (all.mean.expect("some"), shortest.mean.expect("some"));
    // Paired by seed: the difference varies much less than either.
    assert!((a / b - 1.0).abs() < 0.01, "{a} {b}");
}

#[test]
fn with_a_core_for_everyone_a_response_takes_its_size() {
    let mut roomy = setup(0.8, 20_000);
    roomy.workers.iter_mut().for_each(|w| w.cores = 1e4);
    for model in [Model::Ps, Model::Fcfs] {
        roomy.model = model;
        let (record, _) = record(&roomy, "random", Path::Inline);
        for done in &record.0 {
            let latency = done.finished - done.arrived;
            assert!((latency - done.work).abs() < 1e-12 * (1.0 + done.finished));
        }
    }
}

#[test]
fn a_short_quota_period_is_processor_sharing() {
    for (cores, host_cores) in [(4.0, 8.0), (0.4, 2.0)] {
        let mut shared = setup(0.8, 100_000);
        shared.workers.truncate(1);
        shared.workers[0].cores = cores;
        shared.source = Source::Open {
            gaps: SizeLaw::Exponential,
            rate_rps: 0.8 * cores,
        };
        let mut quota = shared.clone();
        quota.model = Model::Quota {
            period: 1.0 / 50.0,
            host_cores,
            phase: 0.0,
        };
        let mean = |setup| outcome(setup, "random").mean.expect("some");
        let (a, b) = (mean(&shared), mean(&quota));
        assert!((a / b - 1.0).abs() < 0.02, "{cores} cores: {a} {b}");
    }
}

#[test]
fn two_strategies_with_one_seed_see_the_same_requests() {
    let base = setup(0.8, 5_000);
    let requests = |strategy| {
        let (record, _) = record(&base, strategy, Path::Inline);
        let mut requests: Vec<_> = record
            .0
            .iter()
            .map(|d| (d.seq, d.arrived, d.work))
            .collect();
        requests.sort_by_key(|r| r.0);
        requests
    };
    assert_eq!(requests("random"), requests("prequal"));
}

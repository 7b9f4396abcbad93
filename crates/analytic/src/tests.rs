//! Whatever the arguments, every formula answers with a possible number or says what is out of bounds,
//! and does so soon.

use crate::idle::IdleReport;
use crate::split::{bell_stidham, best, mean_response, proportional};
use crate::worker::{Worker, erlang_c, station_mean_response};
use crate::{OutOfBounds, availability, board, choices, fcfs, idle, interpretation, rotation};
use proptest::prelude::*;

/// Numbers at and beyond every edge, and ordinary ones.
fn any_number() -> impl Strategy<Value = f64> {
    const EDGES: [f64; 14] = [
        0.0,
        -0.0,
        -1.0,
        1.0,
        1.0 - f64::EPSILON,
        1.0 + f64::EPSILON,
        f64::EPSILON,
        f64::MIN_POSITIVE,
        1e-300,
        1e300,
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    prop_oneof![
        prop::sample::select(&EDGES[..]),
        0.0..1.0,
        (-12.0..12.0).prop_map(|x: f64| libm::pow(10.0, x)),
    ]
}

fn any_count() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..12, Just(1_000), Just(1_000_000), Just(u32::MAX)]
}

/// A mean response of workers of speed 1: a number, at least that of a lone request.
fn is_response(got: Result<f64, OutOfBounds>) -> bool {
    got.is_err() || got.is_ok_and(|mean| (1.0 - 1e-9..f64::INFINITY).contains(&mean))
}

fn is_share(got: Result<f64, OutOfBounds>) -> bool {
    got.is_err() || got.is_ok_and(|share| (0.0..=1.0).contains(&share))
}

fn are_shares(shares: &[f64]) -> bool {
    let sum: f64 = shares.iter().sum();
    (sum - 1.0).abs() < 1e-6 && shares.iter().all(|p| (0.0..=1.0 + 1e-9).contains(p))
}

proptest! {
    #[test]
    fn one_number_in_a_possible_number_out(x in any_number(), y in any_number(), n in any_count()) {
        prop_assert!(is_response(choices::mean_response(n, x)));
        prop_assert!(is_response(choices::finite_pool_of_two(n, x)));
        prop_assert!(is_response(fcfs::mean_response(x, y)));
        prop_assert!(is_response(rotation::mean_response(n, x)));
        prop_assert!(is_response(station_mean_response(n, x)));
        prop_assert!(is_response(idle::with_memory(n, x)));
        prop_assert!(is_share(erlang_c(n, x)));
        for report in [IdleReport::Random, IdleReport::ShorterOfTwo] {
            prop_assert!(is_share(idle::found_idle(report, y, x)));
            prop_assert!(is_response(idle::with_lists(report, y, x)));
        }
        prop_assert!(is_share(availability::healthy_share(x, y)));
        prop_assert!(is_share(availability::rotation(x, n)));
        prop_assert!(is_share(availability::least_request(x, y, n)));
        prop_assert!(is_share(availability::streak(x, n)));
    }

    #[test]
    fn a_station_has_a_mean_below_its_capacity_and_none_from_there_on(
        cores in any_number(), speed in any_number(), share in any_number(),
    ) {
        let Ok(worker) = Worker::try_new(cores, speed) else {
            return Ok(());
        };
        let rate = share * worker.capacity();
        let got = worker.mean_response(rate);
        if rate >= 0.0 && rate < worker.capacity() && (1e-9..1e9).contains(&speed) && cores > 1e-9 && share < 0.999_999 {
            prop_assert!(got.is_ok(), "{:?}", got);
        }
        if !(0.0..worker.capacity()).contains(&rate) {
            prop_assert!(got.is_err(), "{:?}", got);
        }
        if let Ok(mean) = got {
            let alone = 1.0 / worker.departure_rate(1.0);
            prop_assert!(mean >= alone * (1.0 - 1e-6) && mean.is_finite(), "{} {}", mean, alone);
        }
    }

    #[test]
    fn splits_are_probabilities_or_refused(
        mu in prop::collection::vec(any_number(), 0..4), share in any_number(),
    ) {
        let rate = share * mu.iter().sum::<f64>();
        if let Ok(split) = bell_stidham(&mu, rate) {
            prop_assert!(are_shares(&split.shares), "{:?}", split);
            prop_assert!(split.mean_response > 0.0 && split.mean_response.is_finite());
        }
        let workers: Result<Vec<Worker>, _> = mu.iter().map(|c| Worker::try_new(*c, 1.0)).collect();
        let Ok(workers) = workers else {
            return Ok(());
        };
        if let Ok(split) = best(&workers, rate) {
            prop_assert!(are_shares(&split.shares), "{:?}", split);
            prop_assert!(split.mean_response > 0.0 && split.mean_response.is_finite());
            let by_capacity = mean_response(&workers, &proportional(&workers), rate);
            // At the brink of its capacity a mean is what rounding of the rate makes of it.
            let settled = share < 0.999_999;
            prop_assert!(!settled || by_capacity.is_err() || by_capacity.is_ok_and(|m| m >= split.mean_response * (1.0 - 1e-6)));
        }
    }

    #[test]
    fn interpretations_are_probabilities_or_refused(
        workers in prop::collection::vec((any_number(), any_number()), 0..6), arrivals in any_number(),
    ) {
        let (counts, capacities): (Vec<f64>, Vec<f64>) = workers.into_iter().unzip();
        if let Ok(shares) = interpretation::basic(&counts, &capacities, arrivals) {
            prop_assert!(are_shares(&shares), "{:?}", shares);
        }
        if let Ok(used) = interpretation::aggressive(&counts, &capacities, arrivals) {
            prop_assert!(!used.is_empty() && used.iter().all(|i| *i < counts.len()));
        }
    }
}

#[test]
fn a_board_is_refused_outside_its_bounds_before_any_work() {
    let edges = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9, -0.0];
    for bad in edges {
        assert!(board::mean_response(2, 0.5, bad).is_err(), "interval {bad}");
        assert!(board::mean_response(2, bad, 1.0).is_err(), "load {bad}");
    }
    for d in [0, 11, u32::MAX] {
        assert!(board::mean_response(d, 0.5, 1.0).is_err(), "choices {d}");
    }
}

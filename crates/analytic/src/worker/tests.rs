use super::{MAX_CORES, Worker, erlang_c, station_mean_response};
use proptest::prelude::*;

fn worker(cores: f64, speed: f64) -> Worker {
    Worker::try_new(cores, speed).unwrap()
}

#[test]
fn known_values_come_out() {
    for (cores, load, expected) in [
        (4, 0.5, 1.08696),
        (4, 0.8, 1.74554),
        (4, 0.9, 2.96938),
        (9, 0.5, 1.01023),
        (9, 0.8, 1.24012),
        (9, 0.9, 1.76059),
        (3, 0.9, 3.72354),
        (2, 0.9, 5.26316),
    ] {
        let got = station_mean_response(cores, load).unwrap();
        assert!((got - expected).abs() < 6e-6, "{cores} at {load}: {got}");
    }
    assert!((erlang_c(4, 3.2).unwrap() - 0.59643).abs() < 6e-6);
}

/// Fractional cores by summing a long truncated chain, term by term.
fn mean_by_hand(cores: f64, speed: f64, rate: f64) -> f64 {
    let (mut p, mut sum, mut number) = (1.0, 1.0, 0.0);
    for n in 1..20_000 {
        p *= rate / (speed * f64::from(n).min(cores));
        sum += p;
        number += p * f64::from(n);
    }
    number / sum / rate
}

#[test]
fn fractional_cores_agree_with_a_long_sum() {
    for (cores, speed) in [(0.4, 1.0), (0.8, 2.0), (1.0, 3.0), (2.5, 1.0), (7.25, 0.3)] {
        for load in [0.1, 0.5, 0.9, 0.98] {
            let rate = load * cores * speed;
            let got = worker(cores, speed).mean_response(rate).unwrap();
            let by_hand = mean_by_hand(cores, speed, rate);
            assert!(
                (got / by_hand - 1.0).abs() < 1e-9,
                "{cores} {load}: {got} {by_hand}"
            );
        }
    }
}

#[test]
fn one_core_or_less_is_m_m_1_at_its_capacity() {
    for (cores, speed) in [(1.0, 1.0), (0.4, 1.0), (0.5, 3.0), (1.0, 4.0)] {
        let w = worker(cores, speed);
        let rate = 0.7 * w.capacity();
        let m_m_1 = 1.0 / (w.capacity() - rate);
        assert!((w.mean_response(rate).unwrap() / m_m_1 - 1.0).abs() < 1e-12);
    }
}

#[test]
fn a_lone_request_takes_its_own_time() {
    assert_eq!(worker(4.0, 2.0).mean_response(0.0).unwrap(), 0.5);
    assert_eq!(worker(0.4, 1.0).mean_response(0.0).unwrap(), 2.5);
    assert!((worker(4.0, 1.0).mean_response(1e-9).unwrap() - 1.0).abs() < 1e-8);
}

#[test]
fn a_huge_pool_never_waits_and_never_overflows() {
    let got = station_mean_response(100_000, 0.9).unwrap();
    assert!((got - 1.0).abs() < 1e-9, "{got}");
    let same = worker(MAX_CORES, 1.0).mean_response(90_000.0).unwrap();
    assert!((same - 1.0).abs() < 1e-9, "{same}");
}

#[test]
fn arguments_outside_their_bounds_are_named() {
    let said = |e: crate::OutOfBounds| e.to_string();
    assert_eq!(
        said(Worker::try_new(0.0, 1.0).unwrap_err()),
        "cores must be from 1e-9 to 100000, got 0"
    );
    assert!(said(Worker::try_new(1.0, f64::NAN).unwrap_err()).starts_with("speed must be"));
    assert!(said(worker(4.0, 1.0).mean_response(4.0).unwrap_err()).contains("below the worker's"));
    assert!(said(worker(4.0, 1.0).mean_response(-1.0).unwrap_err()).contains("rate"));
    assert!(erlang_c(0, 0.5).is_err() && erlang_c(2, 2.0).is_err());
    assert!(station_mean_response(4, 1.0).is_err());
}

proptest! {
    /// Two independent ways to the same number: Erlang's recursion and the birth-death sums.
    #[test]
    fn erlang_and_birth_death_agree(cores in 1_u32..400, load in 0.01_f64..0.999) {
        let erlang = station_mean_response(cores, load).unwrap();
        let sums = worker(f64::from(cores), 1.0).mean_response(f64::from(cores) * load).unwrap();
        prop_assert!((erlang / sums - 1.0).abs() < 1e-9, "{} {}", erlang, sums);
    }

    #[test]
    fn probabilities_sum_to_one_and_give_the_moments(cores in 0.1_f64..20.0, load in 0.01_f64..0.9) {
        let w = worker(cores, 1.0);
        let rate = load * cores;
        let p = w.probabilities(rate, 1000).unwrap();
        let sum: f64 = p.iter().sum();
        let mean: f64 = p.iter().enumerate().map(|(n, p)| n as f64 * p).sum();
        let variance: f64 = p.iter().enumerate().map(|(n, p)| (n as f64 - mean) * (n as f64 - mean) * p).sum();
        let moments = w.moments(rate).unwrap();
        prop_assert!((sum - 1.0).abs() < 1e-9);
        prop_assert!((mean / moments.mean - 1.0).abs() < 1e-8);
        prop_assert!((variance / moments.variance - 1.0).abs() < 1e-8);
    }

    /// The derivative of the mean number is its variance over the rate.
    #[test]
    fn the_marginal_cost_is_the_slope_of_the_mean_number(cores in 0.1_f64..20.0, load in 0.05_f64..0.9) {
        let w = worker(cores, 1.5);
        let (rate, h) = (load * w.capacity(), 1e-5 * w.capacity());
        let number = |rate| w.moments(rate).unwrap().mean;
        let slope = (number(rate + h) - number(rate - h)) / (2.0 * h);
        prop_assert!((w.marginal_cost(rate).unwrap() / slope - 1.0).abs() < 1e-5);
    }

    /// Convexity, on which the best split rests.
    #[test]
    fn the_marginal_cost_rises_with_the_rate(cores in 0.1_f64..20.0, load in 0.0_f64..0.98) {
        let w = worker(cores, 1.0);
        let cost = |load: f64| w.marginal_cost(load * w.capacity()).unwrap();
        prop_assert!(cost(load + 0.01) > cost(load) * (1.0 - 1e-9));
    }
}

use super::{Chain, ChainError, MAX_WORKERS, Rule, SPREAD};
use crate::worker::{Worker, station_mean_response};
use crate::{rotation, split};

fn pool(cores: &[f64], speed: f64) -> Vec<Worker> {
    let worker = |&c: &f64| Worker::try_new(c, speed).unwrap();
    cores.iter().map(worker).collect()
}

fn singles(speeds: &[f64]) -> Vec<Worker> {
    let worker = |&s: &f64| Worker::try_new(1.0, s).unwrap();
    speeds.iter().map(worker).collect()
}

fn at_load(workers: &[Worker], load: f64, rule: &Rule) -> f64 {
    let capacity: f64 = workers.iter().map(Worker::capacity).sum();
    let chain = Chain::try_new(workers, load * capacity).unwrap();
    chain.solve(rule).unwrap().mean_response
}

/// The rows of the table of 4/3/2 cores: optimum, (n+1)/c, n/c, n.
fn check_432(load: f64, expected: [f64; 4]) {
    let workers = pool(&[4.0, 3.0, 2.0], 1.0);
    let rules = [
        Rule::Optimal,
        Rule::ExpectedDelay,
        Rule::PerCapacity,
        Rule::Shortest,
    ];
    for (rule, expected) in rules.iter().zip(expected) {
        let got = at_load(&workers, load, rule);
        assert!((got - expected).abs() < 7e-6, "{rule:?} at {load}: {got}");
    }
}

#[test]
fn known_values_of_4_3_2_come_out_up_to_a_load_of_7_tenths() {
    check_432(0.5, [1.01392, 1.01395, 1.01542, 1.05732]);
    check_432(0.7, [1.10717, 1.10755, 1.11165, 1.20582]);
}

#[test]
#[ignore = "seconds"]
fn known_values_of_4_3_2_come_out_at_high_load() {
    check_432(0.8, [1.26791, 1.26880, 1.27381, 1.39626]);
    check_432(0.9, [1.80317, 1.80502, 1.81007, 1.96167]);
}

#[test]
fn the_shortest_of_two_single_cores_has_its_known_mean() {
    let two = singles(&[1.0, 1.0]);
    for (load, expected) in [(0.5, 1.42632), (0.8, 2.95574), (0.9, 5.47491)] {
        let got = at_load(&two, load, &Rule::Shortest);
        assert!((got - expected).abs() < 7e-6, "{load}: {got}");
    }
}

/// 0.4/0.3/0.2 of a core, which single cores of speeds 4, 3, 2 are too, ten times as fast.
#[test]
fn known_values_of_fractional_cores_come_out() {
    let expected = [
        (0.5, [3.858, 3.927, 4.169, 4.356]),
        (0.7, [5.465, 5.570, 5.652, 5.955]),
    ];
    let rules = [
        Rule::Optimal,
        Rule::ExpectedDelay,
        Rule::PerCapacity,
        Rule::Shortest,
    ];
    for (load, means) in expected {
        for (rule, mean) in rules.iter().zip(means) {
            let got = at_load(&pool(&[0.4, 0.3, 0.2], 1.0), load, rule);
            assert!((got - mean).abs() < 6e-4, "{rule:?} at {load}: {got}");
            let faster = at_load(&singles(&[4.0, 3.0, 2.0]), load, rule);
            assert!((got / faster - 10.0).abs() < 1e-3, "{rule:?}: {faster}");
        }
    }
}

#[test]
fn one_worker_is_the_station() {
    for rule in [Rule::Optimal, Rule::Shortest] {
        let got = at_load(&pool(&[4.0], 1.0), 0.8, &rule);
        let station = station_mean_response(4, 0.8).unwrap();
        assert!((got - station).abs() < 2.0 * SPREAD, "{got} {station}");
    }
}

#[test]
fn a_split_on_the_chain_agrees_with_the_closed_form() {
    let workers = pool(&[2.0, 1.0, 0.5], 1.0);
    let shares = split::proportional(&workers);
    let rate = 0.5 * 3.5;
    let chain = Chain::with_box(&workers, rate, &[45.0, 45.0, 45.0]).unwrap();
    let got = chain.solve(&Rule::Split(shares.clone())).unwrap();
    let closed = split::mean_response(&workers, &shares, rate).unwrap();
    assert!(
        (got.mean_response - closed).abs() < 2e-5,
        "{} {closed}",
        got.mean_response
    );
}

#[test]
fn the_optimum_is_between_one_pool_and_every_fixed_strategy() {
    for (workers, pooled) in [
        (pool(&[4.0, 1.0], 1.0), 5.0),
        (pool(&[0.8, 0.6, 0.4], 1.0), 1.8),
        (pool(&[3.0, 1.0, 1.0], 1.0), 5.0),
    ] {
        let load = 0.6;
        let best = at_load(&workers, load, &Rule::Optimal);
        let one_pool = Worker::try_new(pooled, 1.0).unwrap();
        assert!(one_pool.mean_response(load * pooled).unwrap() < best);
        let shares = split::best(&workers, load * pooled).unwrap().shares;
        for rule in [
            Rule::ExpectedDelay,
            Rule::PerCapacity,
            Rule::Shortest,
            Rule::Split(shares),
        ] {
            let got = at_load(&workers, load, &rule);
            assert!(best <= got + SPREAD, "{rule:?}: {best} {got}");
        }
    }
    // Equal workers: the shortest is the best, and better than taking turns.
    let two = singles(&[1.0, 1.0]);
    let shortest = at_load(&two, 0.8, &Rule::Shortest);
    assert!((at_load(&two, 0.8, &Rule::Optimal) - shortest).abs() < 2.0 * SPREAD);
    assert!(shortest < rotation::mean_response(2, 0.8).unwrap());
}

#[test]
fn a_larger_box_changes_no_digit() {
    let workers = pool(&[4.0, 3.0, 2.0], 1.0);
    for rule in [Rule::Optimal, Rule::Shortest] {
        let means = [[26.0, 22.0, 18.0], [40.0, 36.0, 32.0]].map(|edges| {
            let chain = Chain::with_box(&workers, 4.5, &edges).unwrap();
            chain.solve(&rule).unwrap().mean_response
        });
        assert!((means[0] - means[1]).abs() < SPREAD, "{means:?}");
    }
}

/// Plain relative value iteration by the book, one uniformized step at a time.
fn plain_iteration(workers: &[Worker], rate: f64, size: usize, is_optimal: bool) -> f64 {
    let capacity: f64 = workers.iter().map(Worker::capacity).sum();
    let steps = rate + capacity;
    let mut values = vec![vec![0.0; size]; size];
    loop {
        let mut next = values.clone();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for a in 0..size {
            for b in 0..size {
                let stay = values[a][b];
                let to_a = if a + 1 < size {
                    Some(values[a + 1][b])
                } else {
                    None
                };
                let to_b = if b + 1 < size {
                    Some(values[a][b + 1])
                } else {
                    None
                };
                let arrived = if is_optimal {
                    let least = [to_a, to_b]
                        .into_iter()
                        .flatten()
                        .fold(f64::INFINITY, f64::min);
                    if least.is_finite() { least } else { stay }
                } else {
                    let score = |n: usize, w: &Worker| (n + 1) as f64 / w.capacity();
                    let (sa, sb) = (score(a, &workers[0]), score(b, &workers[1]));
                    let (to_a, to_b) = (to_a.unwrap_or(stay), to_b.unwrap_or(stay));
                    if sa < sb {
                        to_a
                    } else if sb < sa {
                        to_b
                    } else {
                        f64::midpoint(to_a, to_b)
                    }
                };
                let (ra, rb) = (
                    workers[0].departure_rate(a as f64),
                    workers[1].departure_rate(b as f64),
                );
                let left_a = if a > 0 { values[a - 1][b] } else { stay };
                let left_b = if b > 0 { values[a][b - 1] } else { stay };
                let value = ((a + b) as f64
                    + rate * arrived
                    + ra * left_a
                    + rb * left_b
                    + (capacity - ra - rb) * stay)
                    / steps;
                next[a][b] = value;
                if 3 * a < size && 3 * b < size {
                    low = low.min(value - stay);
                    high = high.max(value - stay);
                }
            }
        }
        let empty = next[0][0];
        next.iter_mut().flatten().for_each(|v| *v -= empty);
        values = next;
        if (high - low) * steps / rate < SPREAD {
            return f64::midpoint(low, high) * steps / rate;
        }
    }
}

#[test]
fn plain_value_iteration_comes_to_the_same() {
    for (cores, speeds, load) in [
        ([1.0, 1.0], [1.0, 1.0], 0.8),
        ([4.0, 1.0], [1.0, 1.0], 0.7),
        ([2.0, 0.5], [1.0, 3.0], 0.6),
        ([1.0, 8.0], [5.0, 0.2], 0.8),
    ] {
        let workers = [0, 1].map(|i| Worker::try_new(cores[i], speeds[i]).unwrap());
        let rate = load * workers.iter().map(Worker::capacity).sum::<f64>();
        for (rule, is_optimal) in [(Rule::Optimal, true), (Rule::ExpectedDelay, false)] {
            let plain = plain_iteration(&workers, rate, 60, is_optimal);
            let chain = Chain::with_box(&workers, rate, &[59.0, 59.0]).unwrap();
            let got = chain.solve(&rule).unwrap().mean_response;
            assert!(
                (got - plain).abs() < 2.0 * SPREAD,
                "{cores:?} {rule:?}: {got} {plain}"
            );
        }
    }
}

#[test]
fn the_values_make_the_optimal_strategy() {
    let workers = singles(&[4.0, 1.0]);
    let chain = Chain::try_new(&workers, 1.0).unwrap();
    let values = chain.solve(&Rule::Optimal).unwrap().values;
    assert_eq!(values.at(&[0, 0]), Some(0.0));
    let prefers_fast =
        |fast: u32| values.after(&[fast, 0], 0).unwrap() < values.after(&[fast, 0], 1).unwrap();
    // The slow one is worth a request only when several wait at the fast one.
    assert!(prefers_fast(0) && prefers_fast(1) && !prefers_fast(20));
    assert_eq!(values.at(&[1_000_000, 0]), None);
    assert_eq!(values.at(&[0]), None);
    assert_eq!(values.after(&[0, 0], 2), None);
    assert_eq!(values.after(&[0; MAX_WORKERS + 1], 0), None);
}

#[test]
fn arguments_outside_their_bounds_are_named() {
    let three = pool(&[4.0, 3.0, 2.0], 1.0);
    let said = |e: crate::OutOfBounds| e.to_string();
    assert!(said(Chain::try_new(&[], 1.0).unwrap_err()).contains("workers must be from 1 to 3"));
    assert!(said(Chain::try_new(&three, 9.0).unwrap_err()).contains("total capacity"));
    assert!(said(Chain::try_new(&three, 8.99).unwrap_err()).contains("states"));
    assert!(said(Chain::with_box(&three, 4.0, &[9.0]).unwrap_err()).contains("edges"));
    assert!(
        said(Chain::with_box(&three, 4.0, &[9.0, 9.0, f64::NAN]).unwrap_err()).contains("edge")
    );
    let chain = Chain::try_new(&three, 4.0).unwrap();
    assert!(
        chain
            .solve(&Rule::Split(vec![1.0]))
            .unwrap_err()
            .to_string()
            .contains("shares")
    );
    let sum = chain.solve(&Rule::Split(vec![0.5, 0.5, 0.5])).unwrap_err();
    assert!(matches!(sum, ChainError::OutOfBounds(_)));
}

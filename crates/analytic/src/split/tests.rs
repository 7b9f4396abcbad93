use super::{bell_stidham, best, mean_response, proportional};
use crate::Worker;
use proptest::prelude::*;

fn workers(cores: &[f64]) -> Vec<Worker> {
    let whole = |&c: &f64| Worker::try_new(c, 1.0).unwrap();
    cores.iter().map(whole).collect()
}

#[test]
fn known_splits_of_single_cores_come_out() {
    for (load, expected) in [(0.5, 0.64119), (0.9, 3.2626)] {
        let got = bell_stidham(&[4.0, 3.0, 2.0], 9.0 * load).unwrap();
        assert!((got.mean_response - expected).abs() < 6e-5, "{got:?}");
    }
}

#[test]
fn known_best_splits_of_4_3_2_come_out() {
    let w = workers(&[4.0, 3.0, 2.0]);
    for (load, expected) in [
        (0.5, 1.14801),
        (0.6, 1.28173),
        (0.7, 1.52720),
        (0.8, 2.04768),
        (0.9, 3.66032),
    ] {
        let got = best(&w, 9.0 * load).unwrap();
        assert!(
            (got.mean_response - expected).abs() < 6e-6,
            "{load}: {got:?}"
        );
    }
    for (load, shares) in [
        (0.5, [0.4925, 0.3295, 0.1780]),
        (0.7, [0.4673, 0.3319, 0.2008]),
        (0.9, [0.4506, 0.3330, 0.2164]),
    ] {
        let got = best(&w, 9.0 * load).unwrap();
        for (g, e) in got.shares.iter().zip(shares) {
            assert!((g - e).abs() < 6e-5, "{load}: {got:?}");
        }
    }
}

#[test]
fn the_proportional_split_has_its_known_mean() {
    let w = workers(&[4.0, 3.0, 2.0]);
    let shares = proportional(&w);
    let at = |load: f64| mean_response(&w, &shares, 9.0 * load).unwrap();
    assert!((at(0.8) - 2.08596).abs() < 6e-6, "{}", at(0.8));
    assert!((at(0.5) - 1.1654).abs() < 6e-5);
    assert!((at(0.9) - 3.7305).abs() < 6e-5);
}

/// Every split on a grid of 1/200, the slow and obvious way.
#[test]
fn no_split_on_a_grid_is_better_than_the_best() {
    for (cores, load) in [
        ([4.0, 3.0, 2.0], 0.6),
        ([8.0, 1.0, 0.4], 0.3),
        ([0.8, 0.6, 0.4], 0.8),
    ] {
        let w = workers(&cores);
        let rate = load * cores.iter().sum::<f64>();
        let found = best(&w, rate).unwrap();
        let mut least = f64::INFINITY;
        for a in 0..=200 {
            for b in 0..=200 - a {
                let shares = [a, b, 200 - a - b].map(|n| f64::from(n) / 200.0);
                least = least.min(mean_response(&w, &shares, rate).unwrap_or(f64::INFINITY));
            }
        }
        assert!(found.mean_response <= least, "{found:?} {least}");
        assert!(found.mean_response > 0.995 * least, "{found:?} {least}");
    }
}

#[test]
fn a_slow_worker_is_left_out_at_low_load() {
    let got = bell_stidham(&[10.0, 0.1], 1.0).unwrap();
    assert_eq!(got.shares, [1.0, 0.0]);
    assert!((got.mean_response - 1.0 / 9.0).abs() < 1e-12);
    let single = |s: f64| Worker::try_new(1.0, s).unwrap();
    let same = best(&[single(10.0), single(0.1)], 1.0).unwrap();
    assert!((same.mean_response - 1.0 / 9.0).abs() < 1e-9 && same.shares[1] < 1e-9);
}

#[test]
fn arguments_outside_their_bounds_are_named() {
    let w = workers(&[4.0, 3.0]);
    let said = |e: crate::OutOfBounds| e.to_string();
    assert!(said(best(&w, 7.0).unwrap_err()).contains("below the total capacity"));
    assert!(said(best(&[], 1.0).unwrap_err()).contains("workers must be at least 1"));
    assert!(said(mean_response(&w, &[1.0], 1.0).unwrap_err()).contains("as many as workers"));
    assert!(said(mean_response(&w, &[0.5, 0.4], 1.0).unwrap_err()).contains("sum of the shares"));
    // An equal split overloads the smaller one.
    assert!(said(mean_response(&w, &[0.5, 0.5], 6.0).unwrap_err()).contains("rate must be"));
    assert!(bell_stidham(&[1.0, -1.0], 0.5).is_err());
    assert!(bell_stidham(&[], 0.5).is_err());
}

proptest! {
    /// With one core each the general solver must find the closed form.
    #[test]
    fn single_cores_agree_with_the_closed_form(mu in prop::collection::vec(0.1_f64..5.0, 1..6), load in 0.05_f64..0.95) {
        let rate = load * mu.iter().sum::<f64>();
        let closed = bell_stidham(&mu, rate).unwrap();
        let w: Vec<Worker> = mu.iter().map(|&m| Worker::try_new(1.0, m).unwrap()).collect();
        let solved = best(&w, rate).unwrap();
        prop_assert!((solved.mean_response / closed.mean_response - 1.0).abs() < 1e-7);
        let sum: f64 = closed.shares.iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-9);
        for (a, b) in solved.shares.iter().zip(&closed.shares) {
            prop_assert!((a - b).abs() < 1e-4, "{:?} {:?}", solved, closed);
        }
    }
}

//! The best of d sampled workers, SQ(d), over equal single-core ones with exponential sizes.

use crate::bound::{OutOfBounds, require, require_load};

/// Most sampled workers.
pub const MAX_CHOICES: u32 = 1_000;

/// Mean response in units of S with infinitely many workers: sum_{i>=1} load^((d^i - d)/(d - 1))
/// (Mitzenmacher 1996; Vvedenskaya, Dobrushin and Karpelevich 1996). d = 1 is M/M/1.
///
/// # Errors
/// A load outside 0..1, `d` outside 1..=[`MAX_CHOICES`].
pub fn mean_response(d: u32, load: f64) -> Result<f64, OutOfBounds> {
    require_load(load)?;
    let choices = f64::from(d);
    let is_met = (1..=MAX_CHOICES).contains(&d);
    require(is_met, "choices", choices, "from 1 to 1000")?;
    if d == 1 {
        return Ok(1.0 / (1.0 - load));
    }
    let log_load = libm::log(load);
    // The exponents are 0, d, d + d^2, ..: each is d*(the one before + 1).
    let mut exponent = 0.0;
    let mut sum = 0.0;
    loop {
        let term = libm::exp(exponent * log_load);
        if term < 1e-18 {
            return Ok(sum);
        }
        sum += term;
        exponent = choices * (exponent + 1.0);
    }
}

/// How far a finite pool of two choices, sampled **with replacement**, is above the limit, times the
/// number of workers and the load: E[T] = limit + k/(N*load).
///
/// Simulated values of k at N = 10 and N = 100 (Gast and Van Houdt 2017, table 1: 1/N expansion).
const FINITE_POOL: [(u32, f64, f64); 6] = [
    (10, 0.7, 0.8930),
    (10, 0.9, 4.5130),
    (10, 0.95, 10.8130),
    (100, 0.7, 0.8300),
    (100, 0.9, 4.0400),
    (100, 0.95, 9.0800),
];

/// Mean response in units of S of SQ(2) with replacement over `workers` workers: the limit plus
/// k/(N*load), with the tabulated k where there is one, else load^2/(2(1 - load)), which is good from
/// about 100 workers on (Gast and Van Houdt 2017).
///
/// # Errors
/// A load outside 0..1; fewer than 100 workers at a pair (workers, load) that is not tabulated.
pub fn finite_pool_of_two(workers: u32, load: f64) -> Result<f64, OutOfBounds> {
    let limit = mean_response(2, load)?;
    let n = f64::from(workers);
    let tabulated = FINITE_POOL
        .iter()
        .find(|(w, l, _)| *w == workers && (l - load).abs() < 1e-12);
    let k = if let Some((_, _, k)) = tabulated {
        *k
    } else {
        require(
            workers >= 100,
            "workers",
            n,
            "at least 100, or 10 at a load of .7, .9 or .95",
        )?;
        load * load / (2.0 * (1.0 - load))
    };
    Ok(limit + k / (n * load))
}

#[cfg(test)]
mod tests {
    use super::{finite_pool_of_two, mean_response};

    #[test]
    fn known_values_of_two_choices_come_out() {
        for (load, expected) in [
            (0.5, 1.26569),
            (0.7, 1.61445),
            (0.9, 2.61406),
            (0.95, 3.38305),
        ] {
            let got = mean_response(2, load).unwrap();
            assert!((got - expected).abs() < 6e-6, "load {load}: {got}");
        }
    }

    #[test]
    fn more_choices_are_never_worse_and_many_never_wait() {
        for load in [0.3, 0.9, 0.99] {
            let means: Vec<f64> = (1..20).map(|d| mean_response(d, load).unwrap()).collect();
            assert!(means.windows(2).all(|w| w[1] < w[0]), "{means:?}");
            let many = mean_response(1000, load).unwrap();
            assert!((1.0..1.001).contains(&many));
        }
        // Power form by hand at small load: 1 + load^2 + load^6 + ..
        let l: f64 = 0.1;
        let by_hand = 1.0 + l * l + l * l * l * l * l * l;
        assert!((mean_response(2, l).unwrap() - by_hand).abs() < 1e-13);
    }

    #[test]
    fn finite_pools_are_above_the_limit_and_close_to_it_when_large() {
        for (n, load, expected) in [
            (10, 0.7, 1.7420),
            (10, 0.9, 3.1155),
            (10, 0.95, 4.5213),
            (100, 0.9, 2.6590),
        ] {
            let got = finite_pool_of_two(n, load).unwrap();
            assert!((got - expected).abs() < 6e-5, "{n} at {load}: {got}");
        }
        let limit = mean_response(2, 0.9).unwrap();
        let large = finite_pool_of_two(1_000_000, 0.9).unwrap();
        assert!(large > limit && large - limit < 1e-5);
    }

    #[test]
    fn arguments_outside_their_bounds_are_named() {
        let said = |e: crate::OutOfBounds| e.to_string();
        assert!(said(mean_response(0, 0.5).unwrap_err()).contains("choices must be from 1"));
        assert!(said(finite_pool_of_two(20, 0.5).unwrap_err()).contains("at least 100"));
        assert!(said(finite_pool_of_two(100, 1.5).unwrap_err()).contains("load"));
    }
}

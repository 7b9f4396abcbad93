//! Round robin over equal single-core workers: each sees every k-th arrival.

use crate::bound::{OutOfBounds, require, require_load};
use crate::root::bisect;

/// Most workers.
pub const MAX_WORKERS: u32 = 1_000_000;

/// Mean response in units of S when Poisson arrivals rotate over `workers` single-core workers of speed
/// 1, exponential sizes, processor sharing or first come first served: each is an E_k/M/1 queue.
/// E[T] = 1/(1 - x), x the root in (0, 1) of x = (k*load/(k*load + 1 - x))^k (GI/M/1; Kendall 1953).
///
/// # Errors
/// A load outside 0..1, workers outside 1..=[`MAX_WORKERS`].
pub fn mean_response(workers: u32, load: f64) -> Result<f64, OutOfBounds> {
    require_load(load)?;
    let k = f64::from(workers);
    let is_met = (1..=MAX_WORKERS).contains(&workers);
    require(is_met, "workers", k, "from 1 to 1000000")?;
    // Arrivals more regular than Poisson wait less, so the root is at most that of M/M/1: the load.
    let x = bisect(0.0, load, |x| {
        libm::exp(-k * libm::log1p((1.0 - x) / (k * load))) <= x
    });
    Ok(1.0 / (1.0 - x))
}

#[cfg(test)]
mod tests {
    use super::mean_response;

    #[test]
    fn known_values_come_out() {
        for (k, load, expected) in [
            (2, 0.5, 1.61803),
            (2, 0.8, 3.84398),
            (2, 0.9, 7.58828),
            (3, 0.5, 1.49373),
            (3, 0.8, 3.45942),
            (3, 0.9, 6.78472),
        ] {
            let got = mean_response(k, load).unwrap();
            assert!((got - expected).abs() < 6e-6, "k {k} load {load}: {got}");
        }
        // Two at one half is the golden ratio.
        let golden = f64::midpoint(1.0, libm::sqrt(5.0));
        assert!((mean_response(2, 0.5).unwrap() - golden).abs() < 1e-12);
    }

    #[test]
    fn one_worker_is_m_m_1_and_many_are_d_m_1() {
        for load in [0.05, 0.5, 0.9, 0.999] {
            let one = mean_response(1, load).unwrap();
            assert!((one * (1.0 - load) - 1.0).abs() < 1e-9, "{one}");
            // D/M/1: x = exp(-(1 - x)/load), by plain iteration from 0.
            let x = (0..200_000).fold(0.0, |x, _| libm::exp(-(1.0 - x) / load));
            let many = mean_response(1_000_000, load).unwrap();
            assert!((many * (1.0 - x) - 1.0).abs() < 2e-5, "load {load}: {many}");
        }
    }

    #[test]
    fn arguments_outside_their_bounds_are_named() {
        assert!(
            mean_response(0, 0.5)
                .unwrap_err()
                .to_string()
                .contains("workers")
        );
        assert!(
            mean_response(2, 0.0)
                .unwrap_err()
                .to_string()
                .contains("load")
        );
    }
}

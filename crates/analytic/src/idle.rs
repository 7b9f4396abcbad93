//! Join the idle queue, JIQ, over many equal single-core workers with exponential sizes.

use crate::bound::{OutOfBounds, require, require_load, require_positive};
use crate::root::bisect;

/// To which balancer's list a worker reports when it becomes idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReport {
    /// A uniform one.
    Random,
    /// The shorter of two uniform ones.
    ShorterOfTwo,
}

/// Mean response in units of S with one balancer that remembers at most `memory` idle workers, n to
/// infinity: (1 - load)^(-1/(memory + 1)) (Gamarnik, Tsitsiklis and Zubeldia 2018). 0 is random routing.
///
/// # Errors
/// A load outside 0..1.
pub fn with_memory(memory: u32, load: f64) -> Result<f64, OutOfBounds> {
    require_load(load)?;
    Ok(libm::pow(1.0 - load, -1.0 / (f64::from(memory) + 1.0)))
}

/// Share of arrivals that find their balancer's list filled, with several balancers and
/// `workers_each` = n/m workers for each of them, n to infinity (Lu et al. 2011): the root p of
/// p/(1-p) = r(1 - load) for random reports, of sum_{i>=1} p^(2^i - 1) = r(1 - load) for the shorter
/// of two.
///
/// # Errors
/// A load outside 0..1, a ratio not above 0.
pub fn found_idle(report: IdleReport, workers_each: f64, load: f64) -> Result<f64, OutOfBounds> {
    require_load(load)?;
    require_positive("workers per balancer", workers_each)?;
    let idle = workers_each * (1.0 - load);
    require(
        idle < 1e6,
        "idle workers per balancer",
        idle,
        "below 1000000",
    )?;
    Ok(match report {
        IdleReport::Random => idle / (1.0 + idle),
        IdleReport::ShorterOfTwo => bisect(0.0, 1.0, |p| filled_lists(p) >= idle),
    })
}

/// Sum of p^(2^i - 1) over i >= 1: mean length of a list.
fn filled_lists(p: f64) -> f64 {
    let mut sum = 0.0;
    let mut term = p;
    // p^(2^(i+1) - 1) = p * (p^(2^i - 1))^2. At most 64 doublings bring any p < 1 to 0.
    for _ in 0..64 {
        sum += term;
        term = p * term * term;
    }
    sum
}

/// Mean response in units of S with several balancers: 1/(1 - load*(1 - p)), p from [`found_idle`]
/// (Lu et al. 2011; low by 1 to 3 % for 10 workers each, since an idle report may be out of date).
///
/// # Errors
/// As [`found_idle`].
pub fn with_lists(report: IdleReport, workers_each: f64, load: f64) -> Result<f64, OutOfBounds> {
    let p = found_idle(report, workers_each, load)?;
    Ok(1.0 / (1.0 - load * (1.0 - p)))
}

#[cfg(test)]
mod tests {
    use super::{IdleReport, found_idle, with_lists, with_memory};

    #[test]
    fn known_values_come_out() {
        for (memory, expected) in [(0, 10.0), (1, 3.1623), (2, 2.1544), (5, 1.4678)] {
            let got = with_memory(memory, 0.9).unwrap();
            assert!((got - expected).abs() < 6e-5, "memory {memory}: {got}");
        }
        let p = |report| found_idle(report, 10.0, 0.9).unwrap();
        assert!((p(IdleReport::Random) - 0.5).abs() < 1e-12);
        assert!((p(IdleReport::ShorterOfTwo) - 0.6586).abs() < 6e-5);
        let mean = |report| with_lists(report, 10.0, 0.9).unwrap();
        assert!((mean(IdleReport::Random) - 1.818).abs() < 6e-4);
        assert!((mean(IdleReport::ShorterOfTwo) - 1.4435).abs() < 6e-5);
    }

    #[test]
    fn the_root_satisfies_its_equation_and_the_limits_are_random_routing_and_no_waiting() {
        for idle in [0.01_f64, 0.3, 1.0, 4.0, 30.0] {
            let p = found_idle(IdleReport::ShorterOfTwo, 2.0 * idle, 0.5).unwrap();
            let exponents = (1..=40).map(|i| libm::pow(2.0, f64::from(i)) - 1.0);
            let sum: f64 = exponents.map(|e| libm::pow(p, e)).sum();
            assert!((sum / idle - 1.0).abs() < 1e-7, "idle {idle}: {sum}");
        }
        for report in [IdleReport::Random, IdleReport::ShorterOfTwo] {
            let few = with_lists(report, 1e-9, 0.9).unwrap();
            let many = with_lists(report, 1e6, 0.9).unwrap();
            assert!((few - 10.0).abs() < 1e-5 && (many - 1.0).abs() < 1e-4);
        }
        assert!((with_memory(1_000_000, 0.9).unwrap() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn arguments_outside_their_bounds_are_named() {
        let said = found_idle(IdleReport::Random, 0.0, 0.5).unwrap_err();
        assert!(said.to_string().contains("workers per balancer"));
        assert!(with_memory(1, 1.0).is_err());
    }
}

//! Which arms failed too often for their latencies to be compared.
//!
//! Latency is that of good answers only, so an arm that fails its slow requests, or that answers at
//! once with an error, looks fast. An arm is therefore neither ranked nor claimed about when more
//! than [`MAX_FAILED_SHARE`] of its requests failed, or significantly more than of the arm that failed
//! least: given the failures of both together, the binomial chance that at least so many fall on this
//! arm is below .05. Failures come in bursts, which makes that test refuse more often than it says:
//! the safe side. The analysis package applies the same rule.

use evidence::ALPHA;
use statrs::distribution::{Binomial, DiscreteCDF as _};

use super::run::{Outcome, Run};

/// An arm that failed more than this share of its requests is compared with nothing.
pub(crate) const MAX_FAILED_SHARE: f64 = 0.01;

/// Requests after the warm-up, and how many of them were not answered well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Failures {
    pub(crate) failed: u64,
    pub(crate) rows: u64,
}

impl Failures {
    /// Over all of these runs.
    pub(crate) fn of(runs: &[&Run]) -> Self {
        let rows: usize = runs.iter().map(|r| r.rows).sum();
        let ok: usize = runs.iter().map(|r| r.count(Outcome::Ok)).sum();
        Self {
            failed: (rows - ok) as u64,
            rows: rows as u64,
        }
    }

    /// 0..1; 0 without requests.
    pub(crate) fn share(self) -> f64 {
        self.failed as f64 / self.rows.max(1) as f64
    }

    /// Too often to be compared with an arm that failed as `other` did.
    pub(crate) fn too_many_beside(self, other: Self) -> bool {
        self.share() > MAX_FAILED_SHARE || self.chance_beside(other) < ALPHA
    }

    /// Chance that of the failures of both at least so many fall on this arm, were both alike.
    fn chance_beside(self, other: Self) -> f64 {
        let own_part = self.rows as f64 / (self.rows + other.rows) as f64;
        match Binomial::new(own_part, self.failed + other.failed) {
            Ok(law) if self.failed > 0 => law.sf(self.failed - 1),
            _ => 1.0,
        }
    }
}

/// The one of these that failed least.
pub(crate) fn least(arms: impl IntoIterator<Item = Failures>) -> Option<Failures> {
    arms.into_iter()
        .min_by(|a, b| a.share().total_cmp(&b.share()))
}

#[cfg(test)]
mod tests {
    use super::Failures;

    fn failures(failed: u64, rows: u64) -> Failures {
        Failures { failed, rows }
    }

    #[test]
    fn the_chance_is_that_of_coin_throws_between_equal_arms() {
        let beside = |a, b| failures(a, 1000).chance_beside(failures(b, 1000));
        // All of n failures on one of two equal arms: 2^-n.
        assert!((beside(4, 0) - 1.0 / 16.0).abs() < 1e-12);
        // At least 6 of 8: (28 + 8 + 1) / 256.
        assert!((beside(6, 2) - 37.0 / 256.0).abs() < 1e-12);
        assert!((beside(0, 3) - 1.0).abs() < f64::EPSILON);
        // Three times the requests take three quarters of the failures by chance.
        let chance = failures(4, 3000).chance_beside(failures(0, 1000));
        assert!((chance - 0.75_f64.powi(4)).abs() < 1e-12);
    }

    #[test]
    fn one_percent_is_the_bound_whatever_the_other_failed() {
        let most = failures(500, 1000);
        assert!(!failures(10, 1000).too_many_beside(most));
        assert!(failures(11, 1000).too_many_beside(most));
    }

    #[test]
    fn five_against_none_is_beyond_chance_and_four_is_not() {
        let none = failures(0, 5600);
        assert!(!failures(4, 5600).too_many_beside(none));
        assert!(failures(5, 5600).too_many_beside(none));
        assert!(!none.too_many_beside(none) && !failures(0, 0).too_many_beside(none));
    }
}

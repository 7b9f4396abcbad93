//! Two strategies under the same requests, seed by seed: the difference varies far less than either.

use evidence::{Interval, student};

/// Results of two strategies, one pair for each seed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paired {
    pairs: Vec<(f64, f64)>,
}

impl Paired {
    /// Adds what one seed gave for the first and for the second.
    pub fn add(&mut self, first: f64, second: f64) {
        self.pairs.push((first, second));
    }

    /// Pairs so far.
    pub fn pairs(&self) -> &[(f64, f64)] {
        &self.pairs
    }

    /// The second minus the first, with Student's interval over the seeds; none without pairs.
    pub fn difference(&self) -> Option<Interval> {
        let differences: Vec<f64> = self.pairs.iter().map(|(a, b)| b - a).collect();
        student(&differences)
    }

    /// The logarithm of second over first, seed by seed; none with a value that is not above 0.
    pub fn log_ratios(&self) -> Option<Vec<f64>> {
        let is_positive = |(a, b): &(f64, f64)| *a > 0.0 && *b > 0.0;
        let ratio = |pair: &(f64, f64)| is_positive(pair).then(|| libm::log(pair.1 / pair.0));
        self.pairs.iter().map(ratio).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Paired, student};
    use schema::rng::{Purpose, normal, stream};

    #[test]
    fn pairing_sees_what_the_noise_of_the_seeds_hides() {
        let mut rng = stream(1, Purpose::Sizes, 0, 0);
        let mut paired = Paired::default();
        for _ in 0..8 {
            let seed = 100.0 + 10.0 * normal(&mut rng);
            paired.add(seed, seed * 1.01 + 0.01 * normal(&mut rng));
        }
        let difference = paired.difference().expect("pairs");
        assert!(difference.excludes_zero() && (difference.mean - 1.0).abs() < 0.3);
        let ratio = student(&paired.log_ratios().expect("positive")).expect("pairs");
        assert!((ratio.mean - libm::log(1.01)).abs() < 1e-3);
    }

    #[test]
    fn the_worked_interval_and_the_cases_without_one() {
        let mut paired = Paired::default();
        assert_eq!(paired.difference(), None);
        paired.add(1.0, 2.0);
        assert!(!paired.difference().expect("one").half_width.is_finite());
        paired.add(2.0, 5.0);
        // Differences 1 and 3: mean 2, standard error 1, t of one degree of freedom 12.706.
        let got = paired.difference().expect("two");
        assert_eq!((got.mean, got.standard_error), (2.0, 1.0));
        assert!((got.half_width - 12.706).abs() < 1e-3);
        paired.add(0.0, 1.0);
        assert_eq!(paired.log_ratios(), None);
    }
}

//! A mean of few independent values with Student's interval.

use crate::sum::Sum;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Two-sided confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// A mean with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Its standard error; infinite for a single value.
    pub standard_error: f64,
    /// Half the width of the 95 % interval; infinite for a single value.
    pub half_width: f64,
}

impl Interval {
    /// An interval around `mean` of this standard error with so many degrees of freedom.
    pub fn new(mean: f64, standard_error: f64, freedom: usize) -> Self {
        let half_width = if freedom == 0 {
            f64::INFINITY
        } else {
            t_quantile(freedom) * standard_error
        };
        Self {
            mean,
            standard_error,
            half_width,
        }
    }

    /// Whether 0 lies outside.
    pub fn excludes_zero(&self) -> bool {
        self.mean.abs() > self.half_width
    }
}

/// The interval of the mean of independent values; none without values.
pub fn student(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = sum(values.iter().copied()) / n as f64;
    let squares = sum(values.iter().map(|v| (v - mean) * (v - mean)));
    let standard_error = match n {
        1 => f64::INFINITY,
        _ => libm::sqrt(squares / (n as f64 - 1.0) / n as f64),
    };
    Some(Interval::new(mean, standard_error, n - 1))
}

pub(super) fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut sum = Sum::default();
    values.for_each(|v| sum.add(v));
    sum.value()
}

/// What Student's t stays below with probability (1 + [`CONFIDENCE`])/2.
fn t_quantile(freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| {
        t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE))
    })
}

#[cfg(test)]
mod tests {
    use super::{student, t_quantile};

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (freedom, table) in [
            (1, 12.706),
            (4, 2.776),
            (9, 2.262),
            (19, 2.093),
            (39, 2.023),
        ] {
            let got = t_quantile(freedom);
            assert!((got - table).abs() < 6e-4, "{freedom}: {got}");
        }
    }

    #[test]
    fn the_interval_of_a_worked_sample() {
        // Mean 3, variance 2.5, standard error sqrt(.5).
        let got = student(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("values");
        assert_eq!(got.mean, 3.0);
        assert!((got.standard_error - libm::sqrt(0.5)).abs() < 1e-12);
        assert!((got.half_width - 2.776_445 * libm::sqrt(0.5)).abs() < 1e-5);
        assert!(got.excludes_zero());
        assert!(!student(&[7.0]).expect("a value").excludes_zero());
        assert_eq!(student(&[]), None);
    }
}

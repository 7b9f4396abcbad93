//! The mean of few independent values with its 95 % interval: Student's, and Welch's for a difference.

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
    /// An interval around `mean` of this standard error with so many degrees of freedom, which may be no
    /// whole number; 0 of them leave the mean anywhere.
    pub fn new(mean: f64, standard_error: f64, freedom: f64) -> Self {
        Self {
            mean,
            standard_error,
            half_width: t_bound(freedom).map_or(f64::INFINITY, |t| t * standard_error),
        }
    }

    /// Whether 0 lies outside.
    pub fn excludes_zero(&self) -> bool {
        self.mean.abs() > self.half_width
    }
}

/// The interval of the mean of independent values; none without values.
pub fn student(values: &[f64]) -> Option<Interval> {
    let (mean, error_square) = mean_and_error(values)?;
    let standard_error = libm::sqrt(error_square);
    let freedom = values.len() as f64 - 1.0;
    Some(Interval::new(mean, standard_error, freedom))
}

/// The interval of the difference of means `b - a` of independent samples whose variances may differ
/// (Welch 1947, with Satterthwaite's degrees of freedom); none without values in both.
pub fn welch(a: &[f64], b: &[f64]) -> Option<Interval> {
    let ((mean_a, va), (mean_b, vb)) = (mean_and_error(a)?, mean_and_error(b)?);
    let (na, nb) = (a.len() as f64, b.len() as f64);
    let freedom = if !(va + vb).is_finite() {
        0.0
    } else if va + vb == 0.0 {
        1.0
    } else {
        (va + vb) * (va + vb) / (va * va / (na - 1.0) + vb * vb / (nb - 1.0))
    };
    Some(Interval::new(mean_b - mean_a, libm::sqrt(va + vb), freedom))
}

/// The mean and the square of its standard error, infinite for a single value; none without values.
fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().copied().collect::<Sum>().value() / n;
    let squares = values.iter().map(|v| (v - mean) * (v - mean));
    match values.len() {
        0 => None,
        1 => Some((mean, f64::INFINITY)),
        _ => Some((mean, squares.collect::<Sum>().value() / (n - 1.0) / n)),
    }
}

/// What Student's t stays below with probability (1 + [`CONFIDENCE`])/2; none without freedom.
fn t_bound(freedom: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)))
}

#[cfg(test)]
mod tests {
    use super::{student, t_bound, welch};

    #[test]
    fn bounds_are_those_of_printed_tables() {
        for (freedom, table) in [
            (1.0, 12.706),
            (4.0, 2.776),
            (9.0, 2.262),
            (19.0, 2.093),
            (39.0, 2.023),
        ] {
            let got = t_bound(freedom).expect("freedom");
            assert!((got - table).abs() < 6e-4, "{freedom}: {got}");
        }
        assert_eq!(t_bound(0.0), None);
    }

    #[test]
    fn the_interval_of_a_worked_sample() {
        // Mean 3, variance 2.5, standard error sqrt(.5).
        let got = student(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("values");
        assert_eq!(got.mean, 3.0);
        assert!((got.standard_error - libm::sqrt(0.5)).abs() < 1e-12);
        assert!((got.half_width - 2.776_445_105 * libm::sqrt(0.5)).abs() < 1e-6);
        assert!(got.excludes_zero());
        let one = student(&[7.0]).expect("a value");
        assert_eq!((one.mean, one.half_width), (7.0, f64::INFINITY));
        assert!(!one.excludes_zero());
        assert_eq!(student(&[]), None);
        let alike = student(&[2.0; 5]).expect("values");
        assert_eq!((alike.mean, alike.half_width), (2.0, 0.0));
    }

    #[test]
    fn welch_uses_the_fractional_degrees_of_freedom() {
        // va = 1/3, vb = 4/3: df = (5/3)^2 / ((1/9)/2 + (16/9)/2) = 2.941176.
        let got = welch(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).expect("values");
        assert!((got.mean - 2.0).abs() < 1e-12);
        // t(.975; 2.941176) lies a little above t(3) = 3.1824, well below t(2) = 4.3027.
        let t = got.half_width / libm::sqrt(5.0 / 3.0);
        assert!((3.1824..3.4).contains(&t), "{t}");
        let one = welch(&[1.0], &[2.0, 4.0]).expect("values");
        assert_eq!((one.mean, one.half_width), (2.0, f64::INFINITY));
        let alike = welch(&[1.0; 3], &[2.0; 4]).expect("values");
        assert_eq!((alike.mean, alike.half_width), (1.0, 0.0));
        assert_eq!(welch(&[], &[1.0]), None);
    }
}

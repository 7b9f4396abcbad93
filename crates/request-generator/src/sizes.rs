//! The law of task sizes: log-normal, truncated by drawing again.
//!
//! Sizes are rounded to hundredths of a million instructions, so that files stay readable. The
//! paper's preset (median 395, sigma 0.25, 250 to 750) has a mean of about 412.

use rand_core::RngCore;
use schema::problem::Problem;
use schema::rng::normal;
use schema::workload::TASK_SIZE_MI;

/// Least probability that one draw lies within the bounds: below, drawing again takes too long.
const LEAST_ACCEPTED: f64 = 1e-3;

/// A truncated log-normal law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SizeLaw {
    pub(crate) median_mi: f64,
    /// Standard deviation of the logarithm.
    pub(crate) sigma: f64,
    pub(crate) min_mi: f64,
    pub(crate) max_mi: f64,
}

impl SizeLaw {
    /// What reproduces the paper's sizes.
    pub(crate) const PAPER: Self = Self {
        median_mi: 395.0,
        sigma: 0.25,
        min_mi: 250.0,
        max_mi: 750.0,
    };

    /// A law within its bounds.
    ///
    /// # Errors
    /// The flag that is out of bounds, or bounds that hardly any draw would meet.
    pub(crate) fn checked(self) -> Result<Self, Box<Problem>> {
        let size_bound = format!("{} to {}", TASK_SIZE_MI.start(), TASK_SIZE_MI.end());
        for (flag, value) in [
            ("--size-min-mi", self.min_mi),
            ("--size-max-mi", self.max_mi),
            ("--size-median-mi", self.median_mi),
        ] {
            if !TASK_SIZE_MI.contains(&value) {
                return Err(Box::new(
                    Problem::new(flag, value.to_string(), "out of range").allowed(size_bound),
                ));
            }
        }
        if !(0.0..=10.0).contains(&self.sigma) {
            return Err(Box::new(
                Problem::new("--size-sigma", self.sigma.to_string(), "out of range")
                    .allowed("0 to 10"),
            ));
        }
        if self.min_mi > self.max_mi {
            return Err(Box::new(
                Problem::new(
                    "--size-min-mi",
                    self.min_mi.to_string(),
                    "above --size-max-mi",
                )
                .allowed(format!("up to {}", self.max_mi)),
            ));
        }
        if self.accepted() < LEAST_ACCEPTED {
            return Err(Box::new(
                Problem::new(
                    "--size-min-mi, --size-max-mi",
                    format!("{} to {}", self.min_mi, self.max_mi),
                    "fewer than one draw in a thousand lies between",
                )
                .next("widen the bounds or move the median between them"),
            ));
        }
        Ok(self)
    }

    /// One size.
    pub(crate) fn draw(&self, rng: &mut dyn RngCore) -> f64 {
        loop {
            let size_mi = self.median_mi * libm::exp(self.sigma * normal(rng));
            let size_mi = (size_mi * 100.0).round() / 100.0;
            if (self.min_mi..=self.max_mi).contains(&size_mi) {
                return size_mi;
            }
        }
    }

    /// Probability that a draw lies within the bounds.
    fn accepted(&self) -> f64 {
        if self.sigma == 0.0 {
            let inside = (self.min_mi..=self.max_mi).contains(&self.median_mi);
            return if inside { 1.0 } else { 0.0 };
        }
        let cdf = |mi: f64| {
            let z = libm::log(mi / self.median_mi) / self.sigma;
            0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
        };
        cdf(self.max_mi) - cdf(self.min_mi)
    }
}

#[cfg(test)]
mod tests {
    use super::SizeLaw;
    use schema::rng::{Purpose, stream};

    #[test]
    fn the_papers_law_has_a_mean_of_about_412_and_keeps_its_bounds() {
        let law = SizeLaw::PAPER.checked().expect("within bounds");
        let mut rng = stream(1, Purpose::Sizes, 0, 0);
        let sizes: Vec<f64> = (0..100_000).map(|_| law.draw(&mut rng)).collect();
        assert!(sizes.iter().all(|s| (250.0..=750.0).contains(s)));
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((mean - 412.0).abs() < 1.5, "{mean}");
    }

    #[test]
    fn a_law_that_would_draw_forever_is_refused() {
        let paper = SizeLaw::PAPER;
        let refused = [
            SizeLaw {
                min_mi: 90_000.0,
                max_mi: 100_000.0,
                ..paper
            },
            SizeLaw {
                min_mi: 800.0,
                ..paper
            },
            SizeLaw {
                min_mi: f64::NAN,
                ..paper
            },
            SizeLaw {
                median_mi: -1.0,
                ..paper
            },
            SizeLaw {
                sigma: f64::INFINITY,
                ..paper
            },
            SizeLaw {
                sigma: 0.0,
                median_mi: 100.0,
                ..paper
            },
        ];
        for law in refused {
            assert!(law.checked().is_err(), "{law:?}");
        }
        let constant = SizeLaw {
            sigma: 0.0,
            ..paper
        };
        let mut rng = stream(1, Purpose::Sizes, 0, 0);
        assert_eq!(constant.checked().map(|l| l.draw(&mut rng)), Ok(395.0));
    }
}

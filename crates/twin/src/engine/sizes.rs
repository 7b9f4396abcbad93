//! Laws of sizes and gaps, all with mean 1, and the draws of a run.

use super::setup::{Class, Setup};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use schema::rng::{Purpose, exponential, normal, stream, unit};

/// A law of positive numbers with mean 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeLaw {
    /// Exponential.
    Exponential,
    /// Always 1.
    Constant,
    /// Log-normal with this coefficient of variation.
    LogNormal {
        /// Standard deviation over mean, above 0.
        cv: f64,
    },
    /// Two exponential branches with balanced means: rate 2p with probability p, else 2(1-p).
    H2 {
        /// Squared coefficient of variation, at least 1.
        scv: f64,
    },
    /// Pareto with this tail index.
    Pareto {
        /// Tail index, above 1.
        a: f64,
    },
}

impl SizeLaw {
    /// Squared coefficient of variation; infinite for heavy tails.
    pub fn scv(&self) -> f64 {
        match *self {
            Self::Exponential => 1.0,
            Self::Constant => 0.0,
            Self::LogNormal { cv } => cv * cv,
            Self::H2 { scv } => scv,
            Self::Pareto { a } if a > 2.0 => 1.0 / (a * (a - 2.0)),
            Self::Pareto { .. } => f64::INFINITY,
        }
    }
}

/// A law with its constants worked out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sampler {
    Exponential,
    Constant,
    LogNormal { mu: f64, sigma: f64 },
    H2 { p: f64, first: f64, second: f64 },
    Pareto { least: f64, power: f64 },
}

impl Sampler {
    pub(super) fn new(law: &SizeLaw) -> Self {
        match *law {
            SizeLaw::Exponential => Self::Exponential,
            SizeLaw::Constant => Self::Constant,
            SizeLaw::LogNormal { cv } => {
                let variance = libm::log1p(cv * cv);
                Self::LogNormal {
                    mu: -variance / 2.0,
                    sigma: libm::sqrt(variance),
                }
            }
            SizeLaw::H2 { scv } => {
                let p = (1.0 + libm::sqrt((scv - 1.0) / (scv + 1.0))) / 2.0;
                Self::H2 {
                    p,
                    first: 1.0 / (2.0 * p),
                    second: 1.0 / (2.0 * (1.0 - p)),
                }
            }
            SizeLaw::Pareto { a } => Self::Pareto {
                least: (a - 1.0) / a,
                power: -1.0 / a,
            },
        }
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> f64 {
        match *self {
            Self::Exponential => exponential(rng),
            Self::Constant => 1.0,
            Self::LogNormal { mu, sigma } => libm::exp(mu + sigma * normal(rng)),
            Self::H2 { p, first, second } => {
                let mean = if unit(rng) < p { first } else { second };
                mean * exponential(rng)
            }
            Self::Pareto { least, power } => least * libm::pow(1.0 - unit(rng), power),
        }
    }
}

/// Which class request i is of and how much work it takes, drawn at its arrival.
#[derive(Debug)]
pub(super) struct Sizes {
    sampler: Sampler,
    sizes: ChaCha8Rng,
    choice: ChaCha8Rng,
    /// Cumulative shares of the classes; empty if there is one.
    cumulative: Vec<f64>,
}

impl Sizes {
    pub(super) fn new(setup: &Setup) -> Self {
        let total: f64 = setup.classes.iter().map(|c| c.share).sum();
        let mut sum = 0.0;
        let mut up_to = |class: &Class| {
            sum += class.share / total;
            sum
        };
        let cumulative = match &setup.classes[..] {
            [_] => Vec::new(),
            many => many.iter().map(&mut up_to).collect(),
        };
        Self {
            sampler: Sampler::new(&setup.sizes),
            sizes: stream(setup.seed, Purpose::Sizes, 0, 0),
            choice: stream(setup.seed, Purpose::ApiChoice, 0, 0),
            cumulative,
        }
    }

    /// The class of the next request.
    #[inline]
    pub(super) fn class(&mut self) -> u32 {
        if self.cumulative.is_empty() {
            return 0;
        }
        let u = unit(&mut self.choice as &mut dyn RngCore);
        let place = self.cumulative.partition_point(|c| *c <= u);
        place.min(self.cumulative.len() - 1) as u32
    }

    /// The size of the next request relative to its class's mean.
    #[inline]
    pub(super) fn factor(&mut self) -> f64 {
        self.sampler.draw(&mut self.sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Sampler, SizeLaw};
    use schema::rng::{Purpose, stream};

    #[test]
    fn every_law_has_mean_1_and_its_variance() {
        let laws = [
            SizeLaw::Exponential,
            SizeLaw::Constant,
            SizeLaw::LogNormal { cv: 0.25 },
            SizeLaw::LogNormal { cv: 1.5 },
            SizeLaw::H2 { scv: 10.0 },
            SizeLaw::H2 { scv: 1.0 },
            SizeLaw::Pareto { a: 5.0 },
        ];
        for law in laws {
            let sampler = Sampler::new(&law);
            let mut rng = stream(3, Purpose::Sizes, 0, 0);
            let n = 1_000_000;
            let draws: Vec<f64> = (0..n).map(|_| sampler.draw(&mut rng)).collect();
            assert!(draws.iter().all(|d| *d >= 0.0));
            let mean = draws.iter().sum::<f64>() / f64::from(n);
            let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / f64::from(n);
            // Four standard errors of the mean; the variance more loosely, its own error is larger.
            let error = (law.scv() / f64::from(n)).sqrt();
            assert!((mean - 1.0).abs() <= 4.0 * error, "{law:?}: mean {mean}");
            assert!(
                (variance - law.scv()).abs() <= 0.05 * law.scv(),
                "{law:?}: {variance}"
            );
        }
    }
}

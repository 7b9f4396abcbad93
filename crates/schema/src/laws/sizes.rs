//! Size laws of mean one, and the size of one request around its API's mean.
//!
//! A law is scaled by multiplying its draws: `mean * law.draw(rng)`. Each draw takes a fixed number
//! of draws from the stream (none, one or two by the law), so that request `i` has the same size
//! whatever else was drawn.

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use std::ops::RangeInclusive;

use crate::problem::nearest;
use crate::rng::{exponential, exponentials, normal, unit};

/// Smallest and largest task, in millions of instructions.
pub const TASK_SIZE_MI: RangeInclusive<f64> = 1.0..=100_000.0;
/// Coefficient of variation of a log-normal law and of the noise around an API's mean.
pub const SIZE_CV: RangeInclusive<f64> = 0.0..=10.0;
/// Squared coefficient of variation of a hyperexponential law.
pub const SCV: RangeInclusive<f64> = 1.0..=1000.0;
/// Shape of a Pareto law: at 1 and below it has no mean.
pub const SHAPE: RangeInclusive<f64> = 1.01..=100.0;
/// How many times the small size the large one of a bimodal law is.
pub const RATIO: RangeInclusive<f64> = 1.0..=100_000.0;
/// Share of requests that are large in a bimodal law.
pub const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// Coefficient of variation of `lognormal` without a number.
pub const DEFAULT_CV: f64 = 0.25;
/// Most of one API's requests that noise may put outside [`TASK_SIZE_MI`], where they are drawn
/// again: one in a thousand, so that the mean stays what the file says.
pub const MOST_REDRAWN: f64 = 1e-3;

/// Every spelling with what it means; help texts are made from it.
pub const SPELLINGS: [(&str, &str); 6] = [
    ("det", "all alike"),
    ("exp", "exponential"),
    (
        "lognormal[:CV]",
        "log-normal of that coefficient of variation (0.25)",
    ),
    (
        "h2:SCV",
        "hyperexponential of that squared coefficient of variation",
    ),
    (
        "pareto:A",
        "Pareto of shape A, at most 2 for an infinite variance",
    ),
    (
        "bimodal:RATIO:SHARE",
        "a SHARE of sizes is RATIO times the others",
    ),
];

/// Other names of laws, and the names in [`SPELLINGS`].
pub const ALIASES: [(&str, &str); 2] = [("constant", "det"), ("exponential", "exp")];

/// A law of positive sizes with mean one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeLaw {
    /// Always one. No draw.
    Constant,
    /// Exponential. One draw.
    Exponential,
    /// Log-normal, by [`SizeLaw::log_normal`]. Two draws.
    LogNormal {
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Two exponential branches with balanced means, by [`SizeLaw::hyperexponential`]: rate `2p` with
    /// probability `p`, else `2(1 - p)`. Two draws.
    Hyperexponential {
        /// Probability `p` of the branch of small sizes, at least one half.
        p: f64,
    },
    /// Pareto: `P(X > x) = (least / x)^shape` with `least = (shape - 1) / shape`. One draw.
    Pareto {
        /// Tail exponent ([`SHAPE`]).
        shape: f64,
    },
    /// Two sizes. One draw.
    Bimodal {
        /// The large size over the small one ([`RATIO`]).
        ratio: f64,
        /// Probability of the large one ([`SHARE`]).
        share: f64,
    },
}

impl SizeLaw {
    /// The log-normal law of coefficient of variation `cv` ([`SIZE_CV`]).
    pub fn log_normal(cv: f64) -> Self {
        let sigma = libm::log1p(cv * cv).sqrt();
        Self::LogNormal { sigma }
    }

    /// The hyperexponential law of squared coefficient of variation `scv` ([`SCV`]).
    pub fn hyperexponential(scv: f64) -> Self {
        let p = (1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt()) / 2.0;
        Self::Hyperexponential { p }
    }

    /// Reads a spelling of [`SPELLINGS`], where a name of [`ALIASES`] may stand too.
    ///
    /// # Errors
    /// A lower-case reason with the bound.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = text.split(':');
        let name = pieces.next().unwrap_or_default();
        let values: Vec<&str> = pieces.collect();
        let name = ALIASES
            .iter()
            .find(|(alias, _)| *alias == name)
            .map_or(name, |(_, law)| law);
        match (name, values.as_slice()) {
            ("det", []) => Ok(Self::Constant),
            ("exp", []) => Ok(Self::Exponential),
            ("lognormal", []) => Ok(Self::log_normal(DEFAULT_CV)),
            ("lognormal", [cv]) => bounded("CV", cv, SIZE_CV).map(Self::log_normal),
            ("h2", [scv]) => bounded("SCV", scv, SCV).map(Self::hyperexponential),
            ("pareto", [shape]) => bounded("A", shape, SHAPE).map(|shape| Self::Pareto { shape }),
            ("bimodal", [ratio, share]) => Ok(Self::Bimodal {
                ratio: bounded("RATIO", ratio, RATIO)?,
                share: bounded("SHARE", share, SHARE)?,
            }),
            _ => Err(unknown(name)),
        }
    }

    /// Whether a spelling begins with the name of a law, right or wrong as its values may be.
    pub fn is_named(text: &str) -> bool {
        names().any(|name| text.split(':').next() == Some(name))
    }

    /// One size.
    #[inline]
    pub fn draw(&self, rng: &mut dyn RngCore) -> f64 {
        match *self {
            Self::Constant => 1.0,
            Self::Exponential => exponential(rng),
            Self::LogNormal { sigma } => libm::exp(sigma * (normal(rng) - sigma / 2.0)),
            Self::Hyperexponential { p } => {
                let branch = if unit(rng) < p { p } else { 1.0 - p };
                exponential(rng) / (2.0 * branch)
            }
            Self::Pareto { shape } => (1.0 - 1.0 / shape) * libm::exp(exponential(rng) / shape),
            Self::Bimodal { ratio, share } => {
                let small = bimodal_small(ratio, share);
                if unit(rng) < share {
                    small * ratio
                } else {
                    small
                }
            }
        }
    }

    /// As many sizes as there is room for: those of [`Self::draw`], one after the other.
    pub fn fill(&self, rng: &mut ChaCha8Rng, out: &mut [f64]) {
        match self {
            Self::Exponential => exponentials(rng, out),
            law => out.iter_mut().for_each(|size| *size = law.draw(rng)),
        }
    }

    /// Squared coefficient of variation, which is the variance: infinite for a Pareto law of shape
    /// up to 2.
    pub fn scv(&self) -> f64 {
        match *self {
            Self::Constant => 0.0,
            Self::Exponential => 1.0,
            Self::LogNormal { sigma } => libm::expm1(sigma * sigma),
            Self::Hyperexponential { p } => 1.0 / (2.0 * p * (1.0 - p)) - 1.0,
            Self::Pareto { shape } if shape > 2.0 => 1.0 / (shape * (shape - 2.0)),
            Self::Pareto { .. } => f64::INFINITY,
            Self::Bimodal { ratio, share } => {
                let small = bimodal_small(ratio, share);
                let step = small * (ratio - 1.0);
                share * (1.0 - share) * step * step
            }
        }
    }

    /// Probability of a size of at most `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        match *self {
            _ if x <= 0.0 => 0.0,
            Self::Constant => f64::from(u8::from(x >= 1.0)),
            Self::Exponential => -libm::expm1(-x),
            Self::LogNormal { sigma: 0.0 } => f64::from(u8::from(x >= 1.0)),
            Self::LogNormal { sigma } => normal_cdf(libm::log(x) / sigma + sigma / 2.0),
            Self::Hyperexponential { p } => {
                let q = 1.0 - p;
                -(p * libm::expm1(-2.0 * p * x) + q * libm::expm1(-2.0 * q * x))
            }
            Self::Pareto { shape } => {
                let least = 1.0 - 1.0 / shape;
                if x < least {
                    0.0
                } else {
                    -libm::expm1(shape * libm::log(least / x))
                }
            }
            Self::Bimodal { ratio, share } => {
                let small = bimodal_small(ratio, share);
                if x >= small * ratio {
                    1.0
                } else if x >= small {
                    1.0 - share
                } else {
                    0.0
                }
            }
        }
    }

    /// Probability of a size within `bounds`, both ends included.
    pub fn within(&self, bounds: &RangeInclusive<f64>) -> f64 {
        self.cdf(*bounds.end()) - self.cdf(bounds.start().next_down())
    }
}

/// The small size that makes the mean one.
fn bimodal_small(ratio: f64, share: f64) -> f64 {
    1.0 / (1.0 - share + share * ratio)
}

/// Distribution function of the standard normal law.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// A size to the nearest hundredth of a million instructions, so that files and rows read well.
pub fn rounded_mi(size_mi: f64) -> f64 {
    (size_mi * 100.0).round() / 100.0
}

/// The size of one request of an API of mean `mean_mi`, rounded to hundredths and within
/// [`TASK_SIZE_MI`], outside which it is drawn again.
///
/// `mean_mi` and `noise` must pass [`noise_fits`], else this draws often and moves the mean.
pub fn noisy_mi(mean_mi: f64, noise: &SizeLaw, rng: &mut dyn RngCore) -> f64 {
    loop {
        let size_mi = rounded_mi(mean_mi * noise.draw(rng));
        if TASK_SIZE_MI.contains(&size_mi) {
            return size_mi;
        }
    }
}

/// True if noise hardly ever leaves [`TASK_SIZE_MI`]: at most once in a thousand requests.
pub fn noise_fits(mean_mi: f64, noise: &SizeLaw) -> bool {
    let (least, most) = (TASK_SIZE_MI.start() / mean_mi, TASK_SIZE_MI.end() / mean_mi);
    // The bounds themselves are allowed, whatever the division did to their last bit.
    1.0 - noise.within(&(least.next_down()..=most.next_up())) <= MOST_REDRAWN
}

fn bounded(name: &str, text: &str, bounds: RangeInclusive<f64>) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if bounds.contains(&value) => Ok(value),
        Ok(value) => Err(format!(
            "{name} {value} is out of range (allowed: {} to {})",
            bounds.start(),
            bounds.end()
        )),
        Err(_) => Err(format!("{name} \"{text}\" is not a number")),
    }
}

/// What a law may be called.
fn names() -> impl Iterator<Item = &'static str> {
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    SPELLINGS
        .iter()
        .map(|(form, _)| name_of(form))
        .chain(aliases)
}

/// What stands before the values of a form.
pub(crate) fn name_of(form: &str) -> &str {
    form.split([':', '[']).next().unwrap_or(form)
}

/// Every spelling, those of other names included, for messages.
pub(crate) fn forms() -> Vec<&'static str> {
    let forms = SPELLINGS.iter().map(|(form, _)| *form);
    forms
        .chain(ALIASES.iter().map(|(alias, _)| *alias))
        .collect()
}

fn unknown(name: &str) -> String {
    let what = match nearest(name, names()) {
        Some(near) if near == name => format!("wrong number of values after \"{name}\""),
        Some(near) => format!("unknown size law \"{name}\"; did you mean \"{near}\"?"),
        None => format!("unknown size law \"{name}\""),
    };
    format!("{what} (allowed: {})", forms().join(", "))
}

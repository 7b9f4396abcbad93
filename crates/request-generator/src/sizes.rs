//! The sizes of APIs: a law, truncated by drawing again, or a list.
//!
//! Sizes are rounded to hundredths of a million instructions, so that files stay readable. The
//! paper's preset (log-normal of median 395 and sigma 0.25 within 250 to 750) has a mean of about
//! 412.

use std::ops::RangeInclusive;

use rand_core::RngCore;
use schema::laws::sizes::{SizeLaw, TASK_SIZE_MI, normal_cdf, rounded_mi};
use schema::problem::Problem;
use schema::rng::normal;

use crate::cli::SizeArguments;

/// Least probability that one draw lies within the bounds: below, drawing again takes too long.
const LEAST_ACCEPTED: f64 = 1e-3;
/// The paper's sizes.
pub(crate) const PAPER_MEDIAN_MI: f64 = 395.0;
pub(crate) const PAPER_SIGMA: f64 = 0.25;
pub(crate) const PAPER_BOUNDS_MI: RangeInclusive<f64> = 250.0..=750.0;

/// Every spelling of `--sizes` with what it means.
pub(crate) const SPELLINGS: [(&str, &str); 10] = [
    (
        "lognormal",
        "by --size-median-mi and --size-sigma, within 250 to 750 (default)",
    ),
    (
        "lognormal:MEAN:CV",
        "log-normal of that mean and coefficient of variation",
    ),
    ("constant:MI", "all alike"),
    ("det:MI", "the same"),
    ("exponential:MEAN", "exponential"),
    ("exp:MEAN", "the same"),
    (
        "h2:MEAN:SCV",
        "hyperexponential of that squared coefficient of variation",
    ),
    (
        "pareto:MEAN:A",
        "Pareto of shape A, at most 2 for an infinite variance",
    ),
    (
        "bimodal:SMALL:LARGE:SHARE",
        "a SHARE of the APIs is LARGE: bimodal:100:2000:0.1",
    ),
    ("list:MI,MI,..", "one size for each API"),
];

/// How the sizes of APIs are made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiSizes {
    law: Law,
    bounds_mi: RangeInclusive<f64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Law {
    /// Log-normal by its median and the standard deviation of its logarithm.
    Median {
        median_mi: f64,
        sigma: f64,
    },
    /// A law of mean one, scaled.
    Mean {
        mean_mi: f64,
        law: SizeLaw,
    },
    List(Vec<f64>),
}

impl ApiSizes {
    /// What the flags stand for.
    ///
    /// # Errors
    /// The flag that is out of bounds or does not fit the law, or bounds that hardly any draw meets.
    pub(crate) fn new(arguments: &SizeArguments) -> Result<Self, Box<Problem>> {
        let law = Law::parse(arguments)?;
        let default_bounds = match law {
            Law::Median { .. } => PAPER_BOUNDS_MI,
            _ => TASK_SIZE_MI,
        };
        let min_mi = arguments.size_min_mi.unwrap_or(*default_bounds.start());
        let max_mi = arguments.size_max_mi.unwrap_or(*default_bounds.end());
        in_range("--size-min-mi", min_mi, &TASK_SIZE_MI)?;
        in_range("--size-max-mi", max_mi, &TASK_SIZE_MI)?;
        if min_mi > max_mi {
            let problem = Problem::new("--size-min-mi", min_mi.to_string(), "above --size-max-mi");
            return Err(problem.allowed(format!("up to {max_mi}")).into());
        }
        let sizes = Self {
            law,
            bounds_mi: min_mi..=max_mi,
        };
        if sizes.accepted() < LEAST_ACCEPTED {
            let problem = Problem::new(
                "--size-min-mi, --size-max-mi",
                format!("{min_mi} to {max_mi}"),
                "fewer than one draw in a thousand lies between",
            );
            let next = "widen the bounds or move the law between them";
            return Err(problem.next(next).into());
        }
        Ok(sizes)
    }

    /// One size for each of `count` APIs.
    ///
    /// # Errors
    /// A list of another length, or with a size out of bounds.
    pub(crate) fn draw(
        &self,
        rng: &mut dyn RngCore,
        count: usize,
    ) -> Result<Vec<f64>, Box<Problem>> {
        let Law::List(list) = &self.law else {
            return Ok((0..count).map(|_| self.draw_one(rng)).collect());
        };
        if list.len() != count {
            let what = format!("{} sizes for {count} APIs", list.len());
            let problem = Problem::new("--sizes", "", what);
            return Err(problem.allowed("one for each API").into());
        }
        for size_mi in list {
            in_range("--sizes", *size_mi, &self.bounds_mi)?;
        }
        Ok(list.clone())
    }

    fn draw_one(&self, rng: &mut dyn RngCore) -> f64 {
        loop {
            let size_mi = match &self.law {
                Law::Median { median_mi, sigma } => median_mi * libm::exp(sigma * normal(rng)),
                Law::Mean { mean_mi, law } => mean_mi * law.draw(rng),
                Law::List(_) => unreachable!("a list is not drawn from"),
            };
            let size_mi = rounded_mi(size_mi);
            if self.bounds_mi.contains(&size_mi) {
                return size_mi;
            }
        }
    }

    /// Probability that a draw lies within the bounds.
    fn accepted(&self) -> f64 {
        let (min_mi, max_mi) = (*self.bounds_mi.start(), *self.bounds_mi.end());
        match &self.law {
            Law::List(_) => 1.0,
            Law::Median {
                median_mi,
                sigma: 0.0,
            } => f64::from(u8::from(self.bounds_mi.contains(median_mi))),
            Law::Median { median_mi, sigma } => {
                let cdf = |mi: f64| normal_cdf(libm::log(mi / median_mi) / sigma);
                cdf(max_mi) - cdf(min_mi)
            }
            Law::Mean { mean_mi, law } => {
                // What is rounded to a bound is within it.
                law.within(&((min_mi - 0.005) / mean_mi..=(max_mi + 0.005) / mean_mi))
            }
        }
    }
}

impl Law {
    fn parse(arguments: &SizeArguments) -> Result<Self, Box<Problem>> {
        let text = arguments.sizes.as_str();
        if text == "lognormal" {
            let median_mi = arguments.size_median_mi.unwrap_or(PAPER_MEDIAN_MI);
            let sigma = arguments.size_sigma.unwrap_or(PAPER_SIGMA);
            in_range("--size-median-mi", median_mi, &TASK_SIZE_MI)?;
            in_range("--size-sigma", sigma, &(0.0..=10.0))?;
            return Ok(Self::Median { median_mi, sigma });
        }
        for (flag, value) in [
            ("--size-median-mi", arguments.size_median_mi),
            ("--size-sigma", arguments.size_sigma),
        ] {
            if let Some(value) = value {
                let what = format!("does not belong to --sizes {text}");
                let problem = Problem::new(flag, value.to_string(), what);
                return Err(problem.next("leave it out or use --sizes lognormal").into());
            }
        }
        Self::with_values(text).map_err(|what| Problem::new("--sizes", text, what).into())
    }

    /// A law with its values behind it.
    fn with_values(text: &str) -> Result<Self, String> {
        let forms = SPELLINGS.map(|(form, _)| form).join(", ");
        let (name, rest) = text
            .split_once(':')
            .ok_or_else(|| format!("no size law with its values (allowed: {forms})"))?;
        if name == "list" {
            return rest
                .split(',')
                .map(size)
                .collect::<Result<_, _>>()
                .map(Self::List);
        }
        let (first, rest) = match rest.split_once(':') {
            Some((first, rest)) => (first, format!(":{rest}")),
            None => (rest, String::new()),
        };
        if name == "bimodal" {
            let usage = || "expected bimodal:SMALL:LARGE:SHARE".to_string();
            let (large, share) = rest[rest.len().min(1)..]
                .split_once(':')
                .ok_or_else(usage)?;
            return Self::bimodal(size(first)?, size(large)?, share);
        }
        let mean_mi = size(first)?;
        let law = SizeLaw::parse(&format!("{name}{rest}")).map_err(|what| {
            // Its own forms have no mean in them.
            let what = what.split(" (allowed: det").next().unwrap_or_default();
            format!("{what}; the mean comes first (allowed: {forms})")
        })?;
        Ok(Self::Mean { mean_mi, law })
    }

    fn bimodal(small_mi: f64, large_mi: f64, share: &str) -> Result<Self, String> {
        if large_mi < small_mi {
            return Err(format!("LARGE {large_mi} is below SMALL {small_mi}"));
        }
        let ratio = large_mi / small_mi;
        let law = SizeLaw::parse(&format!("bimodal:{ratio}:{share}"))?;
        let SizeLaw::Bimodal { share, .. } = law else {
            return Err("expected bimodal:SMALL:LARGE:SHARE".into());
        };
        let mean_mi = small_mi * (1.0 - share) + large_mi * share;
        Ok(Self::Mean { mean_mi, law })
    }
}

/// A size within the format's bounds.
fn size(text: &str) -> Result<f64, String> {
    let size_mi: f64 = text
        .parse()
        .map_err(|_| format!("size \"{text}\" is not a number"))?;
    if TASK_SIZE_MI.contains(&size_mi) {
        return Ok(size_mi);
    }
    let (min, max) = (TASK_SIZE_MI.start(), TASK_SIZE_MI.end());
    Err(format!(
        "size {size_mi} is out of range (allowed: {min} to {max})"
    ))
}

/// A flag's number within bounds.
pub(crate) fn in_range(
    flag: &str,
    value: f64,
    bounds: &RangeInclusive<f64>,
) -> Result<(), Box<Problem>> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let problem = Problem::new(flag, value.to_string(), "out of range");
    let allowed = format!("{} to {}", bounds.start(), bounds.end());
    Err(problem.allowed(allowed).into())
}

#[cfg(test)]
mod tests;

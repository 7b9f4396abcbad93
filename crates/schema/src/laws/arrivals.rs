//! Arrival processes: what they are, their bounds, and the span that a number of requests takes.
//!
//! A process is data ([`Arrivals`]), as it stands in a workload file; [`Arrivals::times`] gives its
//! due times. [`Arrivals::parse`] reads the spelling of a command line, see [`SPELLINGS`].

use rand_core::RngCore;
use serde::Serialize;
use std::ops::RangeInclusive;

use super::profile::Profile;
use super::times::Times;

pub use super::spelling::{Rates, SPELLINGS};

/// Constant gap, milliseconds: a microsecond to an hour.
pub const INTERVAL_MS: RangeInclusive<f64> = 1e-3..=3_600_000.0;
/// Mean rate, requests a second; the last rate of a ramp, at which the rest of the requests come.
pub const RATE_RPS: RangeInclusive<f64> = 1e-3..=1_000_000.0;
/// Any other rate of a ramp, requests a second.
pub const RAMP_RPS: RangeInclusive<f64> = 0.0..=1_000_000.0;
/// Coefficient of variation of gamma gaps.
pub const CV: RangeInclusive<f64> = 0.01..=100.0;
/// Swing of a sine as a share of its mean rate: 1 touches zero.
pub const AMPLITUDE: RangeInclusive<f64> = 0.0..=1.0;
/// Period of a sine, milliseconds: up to a week.
pub const PERIOD_MS: RangeInclusive<f64> = 1.0..=604_800_000.0;
/// How long a leg of a ramp takes, milliseconds: 0 is a jump.
pub const OVER_MS: RangeInclusive<f64> = 0.0..=604_800_000.0;
/// Most legs of a ramp.
pub const MAX_LEGS: usize = 1000;

/// An arrival process: a pure function of the seed, the same for every strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "process", rename_all = "lowercase")]
pub enum Arrivals {
    /// One request every `interval_ms` milliseconds, the first at time 0.
    Constant {
        /// Gap, in milliseconds ([`INTERVAL_MS`]).
        interval_ms: f64,
    },
    /// Independent exponential gaps.
    Poisson {
        /// Mean rate, requests a second ([`RATE_RPS`]).
        rate_rps: f64,
    },
    /// Independent gamma gaps: bursts for a coefficient of variation above 1, more even than Poisson
    /// below, Poisson at 1.
    Gamma {
        /// Mean rate, requests a second ([`RATE_RPS`]).
        rate_rps: f64,
        /// Standard deviation of the gaps over their mean ([`CV`]).
        cv: f64,
    },
    /// A Poisson process whose rate is `rate_rps * (1 + amplitude * sin(2 pi t / period))`.
    Sine {
        /// Mean rate over a period, requests a second ([`RATE_RPS`]).
        rate_rps: f64,
        /// Swing as a share of the mean ([`AMPLITUDE`]).
        amplitude: f64,
        /// Period, in milliseconds ([`PERIOD_MS`]).
        period_ms: f64,
    },
    /// A Poisson process whose rate follows straight lines from leg to leg and stays at the last.
    Ramp {
        /// Rate at time 0, requests a second ([`RAMP_RPS`]).
        from_rps: f64,
        /// Where the rate goes from there; 1 to [`MAX_LEGS`].
        legs: Vec<Leg>,
    },
}

/// One straight piece of a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Leg {
    /// Rate at its end, requests a second ([`RAMP_RPS`]; of the last leg [`RATE_RPS`]).
    pub to_rps: f64,
    /// How long it takes, in milliseconds ([`OVER_MS`]).
    pub over_ms: f64,
}

impl Arrivals {
    /// What `process` may say in a file.
    pub const PROCESSES: [&'static str; 5] = ["constant", "poisson", "gamma", "sine", "ramp"];

    /// Due times of this process, drawn from `rng`, in order and without end.
    pub fn times<R: RngCore>(&self, rng: R) -> Times<R> {
        Times::new(self, rng)
    }

    /// The rate at `at_ms` milliseconds after time 0, requests a second; of constant and gamma gaps
    /// the mean rate.
    pub fn rate_rps_at(&self, at_ms: f64) -> f64 {
        match self {
            Self::Constant { interval_ms } => 1e3 / interval_ms,
            Self::Poisson { rate_rps } | Self::Gamma { rate_rps, .. } => *rate_rps,
            Self::Sine {
                rate_rps,
                amplitude,
                period_ms,
            } => {
                let turn = (at_ms / period_ms).fract();
                rate_rps * (1.0 + amplitude * libm::sin(std::f64::consts::TAU * turn))
            }
            Self::Ramp { from_rps, legs } => {
                let (mut rate_rps, mut start_ms) = (*from_rps, 0.0);
                for leg in legs {
                    if at_ms < start_ms + leg.over_ms {
                        let share = (at_ms - start_ms) / leg.over_ms;
                        return rate_rps + (leg.to_rps - rate_rps) * share;
                    }
                    (rate_rps, start_ms) = (leg.to_rps, start_ms + leg.over_ms);
                }
                rate_rps
            }
        }
    }

    /// Milliseconds until `requests` requests are expected to have come; the mean gap is this over
    /// their number.
    pub fn span_ms(&self, requests: u64) -> f64 {
        let requests = requests as f64;
        match self {
            Self::Constant { interval_ms } => requests * interval_ms,
            Self::Poisson { rate_rps } | Self::Gamma { rate_rps, .. } => 1e3 * requests / rate_rps,
            Self::Sine { .. } | Self::Ramp { .. } => Profile::new(self).reach_ns(requests) / 1e6,
        }
    }

    /// The same process with every time divided by `speed`: the shape of the schedule is kept.
    #[must_use]
    pub fn at_speed(mut self, speed: f64) -> Self {
        match &mut self {
            Self::Constant { interval_ms } => *interval_ms /= speed,
            Self::Poisson { rate_rps } | Self::Gamma { rate_rps, .. } => *rate_rps *= speed,
            Self::Sine {
                rate_rps,
                period_ms,
                ..
            } => {
                *rate_rps *= speed;
                *period_ms /= speed;
            }
            Self::Ramp { from_rps, legs } => {
                *from_rps *= speed;
                for leg in legs {
                    leg.to_rps *= speed;
                    leg.over_ms /= speed;
                }
            }
        }
        self
    }

    /// Every number with its name and bounds, in the order of the file; a reader or a caller that
    /// changed a process checks them all.
    pub fn bounded(&self) -> Vec<(String, f64, RangeInclusive<f64>)> {
        let of = |name: &str, value: f64, bounds: RangeInclusive<f64>| (name.into(), value, bounds);
        match self {
            Self::Constant { interval_ms } => vec![of("interval_ms", *interval_ms, INTERVAL_MS)],
            Self::Poisson { rate_rps } => vec![of("rate_rps", *rate_rps, RATE_RPS)],
            Self::Gamma { rate_rps, cv } => {
                vec![of("rate_rps", *rate_rps, RATE_RPS), of("cv", *cv, CV)]
            }
            Self::Sine {
                rate_rps,
                amplitude,
                period_ms,
            } => vec![
                of("rate_rps", *rate_rps, RATE_RPS),
                of("amplitude", *amplitude, AMPLITUDE),
                of("period_ms", *period_ms, PERIOD_MS),
            ],
            Self::Ramp { from_rps, legs } => {
                let mut all = vec![of("from_rps", *from_rps, RAMP_RPS)];
                for (i, leg) in legs.iter().enumerate() {
                    let last = i + 1 == legs.len();
                    let rates = if last { RATE_RPS } else { RAMP_RPS };
                    all.push(of(&format!("legs[{i}].to_rps"), leg.to_rps, rates));
                    all.push(of(&format!("legs[{i}].over_ms"), leg.over_ms, OVER_MS));
                }
                all
            }
        }
    }
}

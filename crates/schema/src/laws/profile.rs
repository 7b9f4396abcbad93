//! A rate that changes over time, and how long it takes to bring a number of requests.
//!
//! With `work(t)` the integral of the rate from 0 to t, the arrivals of a Poisson process of that
//! rate are `t_i = work^-1(s_i)`, where `s_i` are those of a Poisson process of rate one (inversion
//! by time change; Cinlar, *Introduction to Stochastic Processes*, 1975, section 4.7). Both profiles
//! are inverted exactly: a ramp in closed form, a sine by a bracketed Newton iteration within one
//! period, so that nothing drifts over a long run.

use super::arrivals::{Arrivals, Leg};
use std::f64::consts::PI;

/// Times in nanoseconds, rates in requests a nanosecond.
#[derive(Debug, Clone)]
pub(super) enum Profile {
    /// The same rate for ever.
    Flat { rate: f64 },
    /// `rate * (1 + amplitude * sin(2 pi t / period))`.
    Sine {
        rate: f64,
        amplitude: f64,
        period: f64,
    },
    /// Straight lines, then the last rate.
    Ramp(Ramp),
}

/// The pieces of a ramp and how far it has come; requests must be asked for in order.
#[derive(Debug, Clone)]
pub(super) struct Ramp {
    rate: f64,
    legs: std::vec::IntoIter<Leg>,
    leg: Option<Leg>,
    /// Time and work at the start of the current leg.
    start: f64,
    done: f64,
}

impl Profile {
    /// The profile of a process with changing rate; of any other its mean rate.
    pub(super) fn new(arrivals: &Arrivals) -> Self {
        match arrivals {
            Arrivals::Sine {
                rate_rps,
                amplitude,
                period_ms,
            } => Self::Sine {
                rate: rate_rps / 1e9,
                amplitude: *amplitude,
                period: period_ms * 1e6,
            },
            Arrivals::Ramp { from_rps, legs } => {
                let mut legs = legs.clone().into_iter();
                Self::Ramp(Ramp {
                    rate: from_rps / 1e9,
                    leg: legs.next(),
                    legs,
                    start: 0.0,
                    done: 0.0,
                })
            }
            flat => Self::Flat {
                rate: flat.rate_rps_at(0.0) / 1e9,
            },
        }
    }

    /// When the integral of the rate reaches `work` requests, ns. `work` must not decrease from call
    /// to call.
    pub(super) fn reach_ns(&mut self, work: f64) -> f64 {
        match self {
            Self::Flat { rate } => work / *rate,
            Self::Sine {
                rate,
                amplitude,
                period,
            } => {
                let periods = work / (*rate * *period);
                let whole = periods.floor();
                (whole + turn(periods - whole, *amplitude)) * *period
            }
            Self::Ramp(ramp) => ramp.reach_ns(work),
        }
    }
}

impl Ramp {
    fn reach_ns(&mut self, work: f64) -> f64 {
        while let Some(leg) = self.leg {
            let (to, over) = (leg.to_rps / 1e9, leg.over_ms * 1e6);
            let area = (self.rate + to) / 2.0 * over;
            let rest = (work - self.done).max(0.0);
            if rest < area {
                // The positive root of rate*t + slope*t^2/2 = rest, in the form that does not cancel.
                let slope = (to - self.rate) / over;
                let root = (self.rate * self.rate + 2.0 * slope * rest).max(0.0).sqrt();
                let denominator = self.rate + root;
                let within = if denominator > 0.0 {
                    2.0 * rest / denominator
                } else {
                    0.0
                };
                return self.start + within.min(over);
            }
            self.start += over;
            self.done += area;
            self.rate = to;
            self.leg = self.legs.next();
        }
        self.start + (work - self.done).max(0.0) / self.rate
    }
}

/// The part `u` of a period, in 0..1, at which the share `y` of its requests has come: the root of
/// `u + amplitude * sin(pi u)^2 / pi = y`.
fn turn(y: f64, amplitude: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    let mut u = y;
    // Newton needs about four steps, and more only where the rate nearly touches zero; halving, which
    // takes over when a step would leave the bracket, needs 53.
    for _ in 0..64 {
        let (sine, cosine) = libm::sincos(PI * u);
        let excess = u + amplitude * sine * sine / PI - y;
        let step = excess / (1.0 + 2.0 * amplitude * sine * cosine);
        // The last bit of a period: a tenth of a nanosecond of the longest.
        if step.abs() <= f64::EPSILON {
            break;
        }
        if excess > 0.0 {
            high = u;
        } else {
            low = u;
        }
        let newton = u - step;
        u = if newton > low && newton < high {
            newton
        } else {
            low + (high - low) / 2.0
        };
    }
    u
}

//! Due times of an arrival process, one after the other.

use rand_core::RngCore;

use super::arrivals::Arrivals;
use super::gamma;
use super::profile::Profile;
use crate::rng::exponential;

/// The due times of a process: never decreasing, without end.
///
/// Cost on one core of a shared 2-core machine: constant 4 ns a request, Poisson 20, ramp 100, gamma
/// 100 to 200, sine 300 to 400. [`Times::next_ns`] gives unrounded
/// nanoseconds since time 0 as `f64`; a schedule rounds them, a simulation in virtual time need not.
#[derive(Debug, Clone)]
pub struct Times<R> {
    law: Law,
    rng: R,
    /// The last due time, ns.
    now_ns: f64,
}

#[derive(Debug, Clone)]
enum Law {
    /// Requests so far, and the gap.
    Constant {
        count: f64,
        interval_ms: f64,
    },
    Poisson {
        rate_rps: f64,
    },
    Gamma {
        gap_ns: f64,
        shape: f64,
    },
    /// Work so far of a Poisson process of rate one, and the rate it is spread by.
    Changing {
        work: f64,
        profile: Profile,
    },
}

impl<R: RngCore> Times<R> {
    pub(super) fn new(arrivals: &Arrivals, rng: R) -> Self {
        let law = match *arrivals {
            Arrivals::Constant { interval_ms } => Law::Constant {
                count: 0.0,
                interval_ms,
            },
            Arrivals::Poisson { rate_rps } => Law::Poisson { rate_rps },
            Arrivals::Gamma { rate_rps, cv } => Law::Gamma {
                gap_ns: 1e9 / rate_rps,
                shape: 1.0 / (cv * cv),
            },
            Arrivals::Sine { .. } | Arrivals::Ramp { .. } => Law::Changing {
                work: 0.0,
                profile: Profile::new(arrivals),
            },
        };
        let now_ns = 0.0;
        Self { law, rng, now_ns }
    }

    /// When the next request is due, ns after time 0.
    pub fn next_ns(&mut self) -> f64 {
        let rng = &mut self.rng;
        self.now_ns = match &mut self.law {
            Law::Constant { count, interval_ms } => {
                // A product, not a sum: the millionth request is as exact as the first.
                let due_ns = *count * *interval_ms * 1e6;
                *count += 1.0;
                due_ns
            }
            Law::Poisson { rate_rps } => self.now_ns + exponential(rng) * 1e9 / *rate_rps,
            Law::Gamma { gap_ns, shape } => self.now_ns + gamma::mean_one(rng, *shape) * *gap_ns,
            Law::Changing { work, profile } => {
                *work += exponential(rng);
                // Two requests closer than the solver's last bit still come in order.
                profile.reach_ns(*work).max(self.now_ns)
            }
        };
        self.now_ns
    }
}

impl<R: RngCore> Iterator for Times<R> {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        Some(self.next_ns())
    }
}

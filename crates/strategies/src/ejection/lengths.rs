//! How long an ejection lasts.

use rand_chacha::ChaCha8Rng;
use schema::protection::Ejection;
use schema::rng::{Purpose, stream, unit};

/// Doubling lengths with jitter, so that backends ejected together do not come back together.
#[derive(Debug, Clone)]
pub(super) struct Lengths {
    base_ns: u64,
    cap_ns: u64,
    jitter_percent: u32,
    rng: ChaCha8Rng,
}

impl Lengths {
    pub(super) fn new(rules: &Ejection, seed: u64) -> Self {
        Self {
            base_ns: rules.base_ns,
            cap_ns: rules.cap_ns,
            jitter_percent: rules.jitter_percent,
            rng: stream(seed, Purpose::Jitter, 0, 0),
        }
    }

    /// The length of the `number`-th ejection in a row, from 1: base * 2^(number - 1), at most the
    /// cap, drawn around that value.
    pub(super) fn draw_ns(&mut self, number: u32) -> u64 {
        let doublings = (number - 1).min(63);
        let grown_ns = u128::from(self.base_ns) << doublings;
        let length_ns = grown_ns.min(u128::from(self.cap_ns)) as u64;
        if self.jitter_percent == 0 {
            return length_ns;
        }
        let off = (2.0 * unit(&mut self.rng) - 1.0) * f64::from(self.jitter_percent) / 100.0;
        (length_ns as f64 * (1.0 + off)) as u64
    }
}

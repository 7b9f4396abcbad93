//! How busy the pool is, as far as one balancer sees.

use crate::measure::ms;
use crate::time::Time;

/// Largest load that is believed, and arrivals before anything is said.
const LARGEST: f64 = 0.95;
const FROM: u64 = 20;
/// Gain of the means of gaps and needs in the long run.
const GAIN: f64 = 0.01;

/// Means of the gaps between own arrivals and of what they need.
#[derive(Debug, Clone, Default)]
pub(crate) struct Load {
    last: Option<Time>,
    arrivals: u64,
    gap_ms: f64,
    need_ms: f64,
}

impl Load {
    /// A request arrives that needs so many core-ms, if that is known.
    pub(crate) fn note(&mut self, now: Time, need_ms: Option<f64>) {
        if let (Some(last), Some(need_ms)) = (self.last, need_ms) {
            self.arrivals += 1;
            let gain = (1.0 / self.arrivals as f64).max(GAIN);
            self.gap_ms += gain * (ms(now.since_ns(last)) - self.gap_ms);
            self.need_ms += gain * (need_ms - self.need_ms);
        }
        self.last = Some(now);
    }

    /// How many requests would wait if `cores` cores, able to do the work of `capacity` nominal ones,
    /// served one line, by the rule of Sakasegawa (1977), rho^sqrt(2(c+1)) / (1 - rho); 0 while nothing is
    /// known.
    pub(crate) fn waiting(&self, cores: f64, capacity: f64) -> f64 {
        if self.arrivals < FROM || self.gap_ms <= 0.0 {
            return 0.0;
        }
        let rho = (self.need_ms / self.gap_ms / capacity).min(LARGEST);
        libm::pow(rho, libm::sqrt(2.0 * (cores + 1.0))) / (1.0 - rho)
    }
}

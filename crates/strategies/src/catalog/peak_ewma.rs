//! Peak-sensitive mean latency times requests in flight, least of a few drawn.
//!
//! A slow response counts at once, a fast one by and by, and an idle backend's mean fades toward 0.
//! Cost O(choices), O(log n) if all are compared. Not when a backend may fail fast: failures look like speed (use
//! `penalty-peak-ewma` or ejection). With two choices in a small pool a slow pair must sometimes be
//! taken; `choices=0` looks at all. Source: Finagle, tower, linkerd. Ours differs: reads do not change
//! state, and an unsampled busy backend counts as the mean of the others, not as a huge penalty.

use super::least_sampled::LeastSampled;
use crate::backends::{Backend, Backends};
use crate::choose::Draws;
use crate::measure::{ById, Parts, Sampled, Sums, ms, part};
use crate::registry::{Context, Entry, Group, Kind, Parameter, Read, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};

/// Means are added up as of the beginning of an epoch. A fresh one counts e^16 times as much at its end,
/// which leaves room for the sum of as many latencies of hours as there may be backends.
const DECAYS_PER_EPOCH: f64 = 16.0;
/// Units of a mean that is added up: 2^56.
const UNITS_PER_MS: f64 = (1_u64 << 56) as f64;

/// The parameter `decay`.
pub(super) const DECAY: Parameter = Parameter {
    name: "decay",
    kind: Kind::Duration {
        min_ns: 1_000_000,
        max_ns: 600_000_000_000,
    },
    or: &[],
    default: "10s",
    summary: "time constant of the mean",
};
/// The parameter `default-rtt`.
pub(super) const DEFAULT_RTT: Parameter = Parameter {
    name: "default-rtt",
    kind: Kind::Duration {
        min_ns: 1_000,
        max_ns: 60_000_000_000,
    },
    or: &[],
    default: "30ms",
    summary: "latency assumed while nobody has a sample",
};
/// The parameter `choices`.
pub(super) const CHOICES: Parameter = Parameter {
    name: "choices",
    kind: Kind::Integer { min: 0, max: 64 },
    or: &[],
    default: "2",
    summary: "how many are drawn and compared; 0 compares all",
};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[DECAY, DEFAULT_RTT, CHOICES],
    reads: &[Read::InFlight, Read::Latency],
    randomized: |_| true,
    known_flaws: &["T13"],
    ..Entry::new(
        "peak-ewma",
        Group::Latency,
        "peak-sensitive mean latency times requests in flight, least of two drawn",
        |spec, context| Box::new(PeakEwma::new(spec, Penalty::NONE, context)),
    )
};

/// What a failure is recorded as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Penalty {
    /// At least this, ns; `None`: as the time it took.
    pub(super) least_ns: Option<u64>,
    /// Largest retry hint that is heeded, ns.
    pub(super) max_hint_ns: u64,
}

impl Penalty {
    pub(super) const NONE: Self = Self {
        least_ns: None,
        max_hint_ns: 0,
    };

    fn recorded_ns(self, outcome: &Outcome) -> u64 {
        let Some(least_ns) = self.least_ns.filter(|_| outcome.status.is_failure()) else {
            return outcome.latency_ns;
        };
        let asks = matches!(outcome.http_status, Some(429 | 503));
        let hint_ns = outcome.retry_after_ns.filter(|_| asks).unwrap_or(0);
        least_ns.max(hint_ns.min(self.max_hint_ns))
    }
}

/// A mean and when it was true.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Peak {
    pub(crate) mean_ms: f64,
    stamp: Time,
    /// ln(mean) + stamp / decay.
    log_at_zero: f64,
}

impl Peak {
    pub(crate) fn new(now: Time, mean_ms: f64, decay_ns: f64) -> Self {
        Self {
            mean_ms,
            stamp: now,
            log_at_zero: libm::log(mean_ms) + now.as_nanos() as f64 / decay_ns,
        }
    }

    /// What is left of a mean of 1 by `now`.
    fn kept(&self, now: Time, decay_ns: f64) -> f64 {
        libm::exp(-(now.since_ns(self.stamp) as f64) / decay_ns)
    }

    /// After one more response: a higher one counts at once, a lower one by and by.
    pub(crate) fn updated(&self, now: Time, rtt_ms: f64, decay_ns: f64) -> Self {
        let kept = self.kept(now, decay_ns);
        let projected_ms = self.mean_ms * kept;
        let mean_ms = if rtt_ms > projected_ms {
            rtt_ms
        } else {
            projected_ms + rtt_ms * (1.0 - kept)
        };
        Self::new(now, mean_ms, decay_ns)
    }
}

/// The peak-sensitive mean of each backend.
#[derive(Debug, Clone)]
struct Peaks {
    decay_ns: f64,
    default_ms: f64,
    penalty: Penalty,
    peaks: ById<Option<Peak>>,
}

impl Peaks {
    /// Time since 0, in decays.
    fn decays(&self, now: Time) -> f64 {
        now.as_nanos() as f64 / self.decay_ns
    }
}

impl Sampled for Peaks {
    /// Logarithm of the mean as of time 0. All fade alike, so the order does not depend on now.
    type Sample = f64;

    fn sample(&self, _now: Time, backend: &Backend) -> Option<f64> {
        let peak = self.peaks.get(backend.id)?.as_ref()?;
        Some(peak.log_at_zero)
    }

    /// What is left of the mean at the beginning of the epoch, in units that one faded for 38 decays
    /// still fills.
    fn parts(&self, epoch: u64, log: f64) -> Parts {
        let since = log - DECAYS_PER_EPOCH * epoch as f64;
        [part(libm::exp(since) * UNITS_PER_MS), 0]
    }

    fn epoch(&self, now: Time) -> u64 {
        (self.decays(now) / DECAYS_PER_EPOCH) as u64
    }

    fn typical(&self, now: Time, known: &Sums) -> f64 {
        let Some(units) = known.mean(0) else {
            return libm::log(self.default_ms) + self.decays(now);
        };
        let mean_ms = units.max(1.0) / UNITS_PER_MS;
        libm::log(mean_ms) + DECAYS_PER_EPOCH * self.epoch(now) as f64
    }

    fn load(&self, backend: &Backend, log: f64) -> f64 {
        log + libm::log(f64::from(backend.in_flight) + 1.0)
    }

    fn learn(&mut self, now: Time, id: BackendId, outcome: &Outcome, _backends: &Backends) {
        let rtt_ms = ms(self.penalty.recorded_ns(outcome));
        let decay_ns = self.decay_ns;
        let peak = self.peaks.of(id);
        *peak = Some(match peak {
            Some(known) => known.updated(now, rtt_ms, decay_ns),
            None => Peak::new(now, rtt_ms, decay_ns),
        });
    }

    fn make_room(&mut self, backends: &Backends) {
        self.peaks.make_room(backends);
    }
}

#[derive(Debug, Clone)]
pub(super) struct PeakEwma {
    choices: usize,
    draws: Draws,
    /// How one is chosen: among all, or among those drawn.
    least: LeastSampled<Peaks>,
}

impl PeakEwma {
    pub(super) fn new(spec: &Spec, penalty: Penalty, context: &Context) -> Self {
        let measure = Peaks {
            decay_ns: spec.duration_ns("decay").unwrap_or(10_000_000_000) as f64,
            default_ms: ms(spec.duration_ns("default-rtt").unwrap_or(30_000_000)),
            penalty,
            peaks: ById::default(),
        };
        let choices = spec.integer("choices").unwrap_or(2) as usize;
        Self {
            choices,
            draws: Draws::default(),
            least: if choices == 0 {
                LeastSampled::new(measure, context.few)
            } else {
                LeastSampled::of_drawn(measure, context.few)
            },
        }
    }
}

impl Strategy for PeakEwma {
    fn pick(
        &mut self,
        now: Time,
        request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let n = backends.eligible_len();
        if self.choices == 0 || self.choices >= n {
            return self.least.pick(now, request, backends, rng);
        }
        let drawn = self.draws.distinct(n, self.choices, rng);
        let drawn = drawn.iter().map(|i| backends.eligible_at(*i as usize));
        self.least.among(now, drawn, backends, rng)
    }

    fn on_dispatch(
        &mut self,
        now: Time,
        id: BackendId,
        request: &Request<'_>,
        backends: &Backends,
    ) {
        self.least.on_dispatch(now, id, request, backends);
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, backends: &Backends) {
        self.least.on_response(now, id, outcome, backends);
    }

    fn on_backends_changed(&mut self, now: Time, backends: &Backends) {
        self.least.on_backends_changed(now, backends);
    }
}

#[cfg(test)]
mod tests {
    use super::Peak;
    use crate::time::Time;

    #[test]
    fn a_peak_counts_at_once_and_fades() {
        let round = |x: f64| (x * 100.0).round() / 100.0;
        let decay_ns = 10e9;
        let peak = Peak::new(Time::ZERO, 100.0, decay_ns);
        let later = Time::from_millis(10_000);
        assert_eq!(round(100.0 * peak.kept(later, decay_ns)), 36.79);
        assert_eq!(round(peak.updated(later, 20.0, decay_ns).mean_ms), 49.43);
        let high = peak.updated(later, 90.0, decay_ns);
        assert_eq!(high.mean_ms, 90.0);
        // At two requests in flight right after, as a plain number again.
        let load = |peak: Peak| libm::exp(peak.log_at_zero + libm::log(3.0) - 1.0);
        assert_eq!((load(high) * 10.0).round() / 10.0, 270.0);
        let low = peak.updated(later, 20.0, decay_ns);
        assert_eq!((load(low) * 10.0).round() / 10.0, 148.3);
    }
}

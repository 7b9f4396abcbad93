//! Peak-sensitive mean latency times requests in flight, least of a few drawn.
//!
//! A slow response counts at once, a fast one by and by, and an idle backend's mean fades toward 0.
//! Cost O(choices). Not when a backend may fail fast: failures look like speed (use
//! `penalty-peak-ewma` or ejection). With two choices in a small pool a slow pair must sometimes be
//! taken; `choices=0` looks at all. Source: Finagle, tower, linkerd. Ours differs: reads do not change
//! state, and an unsampled busy backend counts as the mean of the others, not as a huge penalty.

use crate::backends::{Backend, Backends};
use crate::choose::{self, Draws};
use crate::measure::{self, ById, Rank, ms};
use crate::registry::{Entry, Group, Kind, Parameter, Read, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};

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
        |spec, _| Box::new(PeakEwma::new(spec, Penalty::NONE)),
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
}

impl Peak {
    pub(crate) fn first(now: Time, rtt_ms: f64) -> Self {
        Self {
            mean_ms: rtt_ms,
            stamp: now,
        }
    }

    /// The mean as of `now`; fades toward 0.
    pub(crate) fn projected_ms(&self, now: Time, decay_ns: f64) -> f64 {
        self.mean_ms * libm::exp(-(now.since_ns(self.stamp) as f64) / decay_ns)
    }

    /// After one more response.
    pub(crate) fn updated(&self, now: Time, rtt_ms: f64, decay_ns: f64) -> Self {
        let projected = self.projected_ms(now, decay_ns);
        let kept = libm::exp(-(now.since_ns(self.stamp) as f64) / decay_ns);
        let mean_ms = if rtt_ms > projected {
            rtt_ms
        } else {
            projected + rtt_ms * (1.0 - kept)
        };
        Self::first(now, mean_ms)
    }
}

#[derive(Debug, Clone)]
pub(super) struct PeakEwma {
    decay_ns: f64,
    default_ms: f64,
    choices: usize,
    penalty: Penalty,
    peaks: ById<Option<Peak>>,
    draws: Draws,
    ranks: Vec<(BackendId, Rank)>,
    tied: Vec<BackendId>,
}

impl PeakEwma {
    pub(super) fn new(spec: &Spec, penalty: Penalty) -> Self {
        Self {
            decay_ns: spec.duration_ns("decay").unwrap_or(10_000_000_000) as f64,
            default_ms: ms(spec.duration_ns("default-rtt").unwrap_or(30_000_000)),
            choices: spec.integer("choices").unwrap_or(2) as usize,
            penalty,
            peaks: ById::default(),
            draws: Draws::default(),
            ranks: Vec::new(),
            tied: Vec::new(),
        }
    }

    fn cost_ms(&self, backend: &Backend, now: Time) -> Option<f64> {
        let peak = self.peaks.get(backend.id)?.as_ref()?;
        Some(peak.projected_ms(now, self.decay_ns))
    }

    fn rank(&self, backend: &Backend, now: Time, backends: &Backends) -> Rank {
        let cost_ms = match self.cost_ms(backend, now) {
            Some(cost_ms) => cost_ms,
            None if backend.in_flight == 0 => return Rank::first(),
            None => {
                let sampled = backends.eligible().filter_map(|b| self.cost_ms(b, now));
                measure::mean_of(sampled).unwrap_or(self.default_ms)
            }
        };
        Rank::of_load(cost_ms * (f64::from(backend.in_flight) + 1.0))
    }
}

impl Strategy for PeakEwma {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let n = backends.eligible_len();
        if n == 0 {
            return None;
        }
        let mut ranks = std::mem::take(&mut self.ranks);
        ranks.clear();
        if self.choices == 0 || self.choices >= n {
            ranks.extend(
                backends
                    .eligible()
                    .map(|b| (b.id, self.rank(b, now, backends))),
            );
        } else {
            let mut draws = std::mem::take(&mut self.draws);
            for i in draws.distinct(n, self.choices, rng) {
                let backend = backends.eligible_at(*i as usize);
                ranks.push((backend.id, self.rank(backend, now, backends)));
            }
            self.draws = draws;
        }
        self.ranks = ranks;
        choose::least_ranked(&self.ranks, &mut self.tied);
        choose::uniform_of(&self.tied, rng)
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, _backends: &Backends) {
        let rtt_ms = ms(self.penalty.recorded_ns(outcome));
        let decay_ns = self.decay_ns;
        let peak = self.peaks.of(id);
        *peak = Some(match peak {
            Some(known) => known.updated(now, rtt_ms, decay_ns),
            None => Peak::first(now, rtt_ms),
        });
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.peaks.make_room(backends);
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
        let peak = Peak::first(Time::ZERO, 100.0);
        let later = Time::from_millis(10_000);
        assert_eq!(round(peak.projected_ms(later, decay_ns)), 36.79);
        assert_eq!(round(peak.updated(later, 20.0, decay_ns).mean_ms), 49.43);
        assert_eq!(peak.updated(later, 90.0, decay_ns).mean_ms, 90.0);
    }
}

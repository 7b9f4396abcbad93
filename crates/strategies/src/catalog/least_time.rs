//! nginx's `least_time`: mean latency times requests in flight per weight, in whole milliseconds.
//!
//! Only good responses count, so a backend failing fast keeps its good mean and attracts traffic; one
//! early slow sample freezes a backend out until `fail-timeout` shifts its mean down. Cost O(n).
//! Source: nginx 1.31 `least_time`.

use crate::backends::{Backend, Backends};
use crate::choose::{Credits, Ties, one_of_least_eligible};
use crate::measure::{ById, Load};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::event::Status;

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "mode",
            kind: Kind::Word(&["last-byte", "header"]),
            or: &[],
            default: "last-byte",
            summary: "latency to the last byte, or to the head of the answer",
        },
        Parameter {
            name: "inflight",
            kind: Kind::Word(&["on", "off"]),
            or: &[],
            default: "off",
            summary: "whether the age of unanswered requests counts too",
        },
        Parameter {
            name: "fail-timeout",
            kind: Kind::Duration {
                min_ns: NS_PER_S,
                max_ns: 3_600_000_000_000,
            },
            or: &[],
            default: "10s",
            summary: "unpicked for longer, a backend's mean is halved, again each time",
        },
    ],
    reads: &[Read::InFlight, Read::Latency, Read::Status],
    honors_weights: HonorsWeights::Yes,
    known_flaws: &["T13", "T14"],
    ..Entry::new(
        "least-time",
        Group::Latency,
        "mean latency times requests in flight per weight, as nginx counts it",
        |spec, _| {
            Box::new(LeastTime {
                to_head: spec.is("mode", "header"),
                with_inflight: spec.is("inflight", "on"),
                fail_timeout_s: spec.duration_ns("fail-timeout").unwrap_or(10 * NS_PER_S)
                    / NS_PER_S,
                state: ById::default(),
                credits: Credits::default(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct History {
    mean_ms: u64,
    /// The mean as it is compared.
    rounded_ms: u64,
    inflight_mean_ms: u64,
    mark_s: u64,
    /// Own dispatches under way: how many, and the sum of their times.
    under_way: u64,
    dispatched_ns: u128,
}

/// The first sample replaces 0; each later one counts a twentieth.
pub(crate) fn mean_with(mean_ms: u64, sample_ms: u64) -> u64 {
    if mean_ms == 0 {
        return sample_ms;
    }
    libm::floor(0.5 + 0.05 * sample_ms as f64 + 0.95 * mean_ms as f64) as u64
}

/// Bounded, then up to the next multiple of 20; grows with what is rounded.
pub(crate) fn rounded(ms: u64) -> u64 {
    if ms > 5000 { 5000 } else { ms + 20 - ms % 20 }
}

impl Default for History {
    fn default() -> Self {
        Self {
            mean_ms: 0,
            rounded_ms: rounded(0),
            inflight_mean_ms: 0,
            mark_s: 0,
            under_way: 0,
            dispatched_ns: 0,
        }
    }
}

impl History {
    fn unpicked_s(&self, now_s: u64) -> u64 {
        now_s.saturating_sub(self.mark_s)
    }

    fn learn(&mut self, sample_ms: u64) {
        self.mean_ms = mean_with(self.mean_ms, sample_ms);
        self.rounded_ms = rounded(self.mean_ms);
    }

    /// The mean, halved for each time that it was long unpicked, as it is compared.
    #[inline]
    fn fading_mean_ms(&self, now_s: u64, fail_timeout_s: u64) -> u64 {
        let unpicked_s = self.unpicked_s(now_s);
        if unpicked_s <= fail_timeout_s {
            return self.rounded_ms;
        }
        let halvings = u32::try_from(unpicked_s / (fail_timeout_s + 1));
        let faded_ms = halvings.ok().and_then(|n| self.mean_ms.checked_shr(n));
        rounded(faded_ms.unwrap_or(0))
    }

    /// Takes the age of what is under way for a sample.
    fn watch(&mut self, now: Time) {
        if self.under_way > 0 {
            let mean_at_ns = (self.dispatched_ns / u128::from(self.under_way)) as u64;
            let age_ms = now.as_nanos().saturating_sub(mean_at_ns) / NS_PER_MS;
            self.inflight_mean_ms = mean_with(self.inflight_mean_ms, age_ms);
        }
    }

    /// Mean age of what is under way, as it is compared; 0 if nothing is.
    fn age_ms(&self) -> u64 {
        if self.under_way > 0 {
            rounded(self.inflight_mean_ms)
        } else {
            0
        }
    }
}

#[derive(Debug, Clone)]
struct LeastTime {
    to_head: bool,
    with_inflight: bool,
    fail_timeout_s: u64,
    state: ById<History>,
    credits: Credits,
}

impl Strategy for LeastTime {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let (now_s, fail_timeout_s) = (now.as_nanos() / NS_PER_S, self.fail_timeout_s);
        if self.with_inflight {
            for backend in backends.eligible() {
                self.state.of(backend.id).watch(now);
            }
        }
        let (state, with_inflight) = (&self.state, self.with_inflight);
        let load = |b: &Backend| {
            let score_ms = state.get(b.id).map_or(0, |h| {
                let mean_ms = h.fading_mean_ms(now_s, fail_timeout_s);
                let age_ms = if with_inflight { h.age_ms() } else { 0 };
                mean_ms.max(age_ms)
            });
            Load::new(score_ms * (1 + u64::from(b.in_flight)), b.weight)
        };
        let (ties, credits) = (Ties::Smooth, &mut self.credits);
        let id = one_of_least_eligible(backends, ties, credits, rng, load)?;
        let history = self.state.of(id);
        if history.unpicked_s(now_s) > fail_timeout_s {
            history.mark_s = now_s;
        }
        Some(id)
    }

    fn on_dispatch(
        &mut self,
        now: Time,
        id: BackendId,
        _request: &Request<'_>,
        _backends: &Backends,
    ) {
        let history = self.state.of(id);
        history.under_way += 1;
        history.dispatched_ns += u128::from(now.as_nanos());
    }

    fn on_response(&mut self, _now: Time, id: BackendId, outcome: &Outcome, _backends: &Backends) {
        let history = self.state.of(id);
        // Dispatches of an earlier strategy were never counted here.
        let dispatched_ns = u128::from(outcome.dispatched_at.as_nanos());
        if history.under_way > 0 && history.dispatched_ns >= dispatched_ns {
            history.under_way -= 1;
            history.dispatched_ns -= dispatched_ns;
        }
        if outcome.status == Status::Ok {
            let sample_ns = if self.to_head {
                outcome.ttfb_ns
            } else {
                outcome.latency_ns
            };
            history.learn(sample_ns / NS_PER_MS);
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.state.make_room(backends);
        self.credits.on_backends_changed(backends);
    }
}

#[cfg(test)]
mod tests {
    use super::{mean_with, rounded};

    #[test]
    fn samples_and_rounding_are_those_of_nginx() {
        assert_eq!(mean_with(0, 100), 100);
        assert_eq!(mean_with(100, 200), 105);
        assert_eq!(rounded(105), 120);
        assert_eq!(rounded(0), 20);
        assert_eq!(rounded(9000), 5000);
    }
}

//! nginx's `least_time`: mean latency times requests in flight per weight, in whole milliseconds.
//!
//! Only good responses count, so a backend failing fast keeps its good mean and attracts traffic; one
//! early slow sample freezes a backend out until `fail-timeout` shifts its mean down. Cost O(n).
//! Source: nginx 1.31 `least_time`.

use crate::backends::{Backend, Backends};
use crate::choose::{Credits, Ties, one_of_least};
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

#[derive(Debug, Clone, Default)]
struct History {
    mean_ms: u64,
    inflight_mean_ms: u64,
    mark_s: u64,
    /// Own dispatches under way: how many, and the sum of their times.
    under_way: u64,
    dispatched_ns: u128,
    /// Scratch: rounded mean of this pick.
    score_ms: u64,
}

/// The first sample replaces 0; each later one counts a twentieth.
pub(crate) fn mean_with(mean_ms: u64, sample_ms: u64) -> u64 {
    if mean_ms == 0 {
        return sample_ms;
    }
    libm::floor(0.5 + 0.05 * sample_ms as f64 + 0.95 * mean_ms as f64) as u64
}

/// Bounded, then up to the next multiple of 20.
pub(crate) fn rounded(ms: u64) -> u64 {
    if ms > 5000 { 5000 } else { ms + 20 - ms % 20 }
}

impl History {
    fn unpicked_s(&self, now: Time) -> u64 {
        (now.as_nanos() / NS_PER_S).saturating_sub(self.mark_s)
    }

    fn score(&mut self, now: Time, fail_timeout_s: u64, with_inflight: bool) {
        let unpicked_s = self.unpicked_s(now);
        let mut ms = self.mean_ms;
        if unpicked_s > fail_timeout_s {
            let halvings = unpicked_s / (fail_timeout_s + 1);
            ms = if halvings > 63 { 0 } else { ms >> halvings };
        }
        if with_inflight && self.under_way > 0 {
            let mean_at_ns = (self.dispatched_ns / u128::from(self.under_way)) as u64;
            let age_ms = now.as_nanos().saturating_sub(mean_at_ns) / NS_PER_MS;
            self.inflight_mean_ms = mean_with(self.inflight_mean_ms, age_ms);
            ms = ms.max(self.inflight_mean_ms);
        }
        self.score_ms = rounded(ms);
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
        for backend in backends.eligible() {
            let history = self.state.of(backend.id);
            history.score(now, self.fail_timeout_s, self.with_inflight);
        }
        let state = &self.state;
        let load = |b: &Backend| {
            let score_ms = state.get(b.id).map_or(0, |h| h.score_ms);
            Load::new(score_ms * (1 + u64::from(b.in_flight)), b.weight)
        };
        let id = one_of_least(
            backends.eligible(),
            Ties::Smooth,
            &mut self.credits,
            rng,
            load,
        )?;
        let history = self.state.of(id);
        if history.unpicked_s(now) > self.fail_timeout_s {
            history.mark_s = now.as_nanos() / NS_PER_S;
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
            history.mean_ms = mean_with(history.mean_ms, sample_ns / NS_PER_MS);
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

//! Dubbo's shortest response: mean latency since the last slide times requests in flight.
//!
//! Only good responses count, in whole milliseconds, and all sums restart each `slide`; failures cost
//! nothing, and one slow sample freezes a backend out until then. Cost O(n). Source: Dubbo; ours keeps
//! one history per backend, not one per method.

use crate::backends::{Backend, Backends};
use crate::choose::{Credits, Ties, one_of_least};
use crate::measure::ById;
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::event::Status;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[Parameter {
        name: "slide",
        kind: Kind::Duration {
            min_ns: 1_000_000_000,
            max_ns: 3_600_000_000_000,
        },
        or: &[],
        default: "30s",
        summary: "after this long all means start anew",
    }],
    reads: &[Read::InFlight, Read::Latency, Read::Status],
    randomized: |_| true,
    honors_weights: HonorsWeights::Ties,
    known_flaws: &["T13", "T14"],
    ..Entry::new(
        "shortest-response",
        Group::Latency,
        "mean latency since the last slide times requests in flight, as Dubbo counts it",
        |spec, _| {
            Box::new(ShortestResponse {
                slide_ns: spec.duration_ns("slide").unwrap_or(30_000_000_000),
                since: Time::ZERO,
                sums: ById::default(),
            })
        },
    )
};

/// Sum of whole milliseconds, and how many.
type Sum = (u64, u64);

#[derive(Debug, Clone)]
struct ShortestResponse {
    slide_ns: u64,
    since: Time,
    sums: ById<Sum>,
}

impl Strategy for ShortestResponse {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let sums = &self.sums;
        let load = |b: &Backend| {
            let (sum_ms, count) = sums.get(b.id).copied().unwrap_or_default();
            u128::from(sum_ms.checked_div(count).unwrap_or(0)) * (1 + u128::from(b.in_flight))
        };
        let credits = &mut Credits::default();
        let id = one_of_least(backends.eligible(), Ties::ByWeight, credits, rng, load);
        if now.since_ns(self.since) > self.slide_ns {
            self.since = now;
            self.sums.iter_mut().for_each(|sum| *sum = (0, 0));
        }
        id
    }

    fn on_response(&mut self, _now: Time, id: BackendId, outcome: &Outcome, _backends: &Backends) {
        if outcome.status == Status::Ok {
            let (sum_ms, count) = self.sums.of(id);
            *sum_ms = sum_ms.saturating_add(outcome.latency_ns / 1_000_000);
            *count += 1;
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.sums.make_room(backends);
    }
}

//! Polled counts, corrected by what this balancer sent (and got answered) since.
//!
//! The live estimate: own in_flight, plus what others held when the poll left. It does not herd however
//! old the report is, and never falls below own in_flight. Without a fresh report it is just that.
//! `subtract-done=off` counts sends only; it is for tables in which all backends are sampled at one
//! instant and punishes whoever was polled longest ago otherwise. Cost O(n). Source: ours, after the
//! paper's outlook.

use crate::backends::{Backend, Backends};
use crate::choose::{self, least};
use crate::measure;
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "subtract-done",
            kind: Kind::Word(&["on", "off"]),
            or: &[],
            default: "on",
            summary: "whether own answers since the poll are taken off again",
        },
        measure::MAX_AGE,
    ],
    reads: &[Read::Poll, Read::InFlight],
    randomized: |_| true,
    honors_weights: HonorsWeights::Yes,
    known_flaws: &["T13"],
    ..Entry::new(
        "polled-own-sends",
        Group::ServerReported,
        "the fewest requests as last polled, own sends and answers since counted in",
        |spec, context| {
            Box::new(PolledOwnSends {
                subtract_done: spec.is("subtract-done", "on"),
                max_age_ns: measure::max_age_ns(spec, context),
                tied: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct PolledOwnSends {
    subtract_done: bool,
    max_age_ns: u64,
    tied: Vec<BackendId>,
}

/// Requests at a backend as this balancer can know.
fn requests(backend: &Backend, now: Time, max_age_ns: u64, subtract_done: bool) -> u64 {
    if subtract_done {
        return measure::live_estimate(backend, now, max_age_ns);
    }
    measure::fresh(backend, now, max_age_ns)
        .map_or(u64::from(backend.in_flight), |(report, active)| {
            u64::from(active) + backend.sent.saturating_sub(report.sent_before)
        })
}

impl Strategy for PolledOwnSends {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let (max_age_ns, subtract_done) = (self.max_age_ns, self.subtract_done);
        let side = |b: &Backend, other: &Backend| {
            (requests(b, now, max_age_ns, subtract_done) + 1) * u64::from(other.weight)
        };
        least(backends, &mut self.tied, |a, b| side(a, b).cmp(&side(b, a)));
        choose::uniform_of(&self.tied, rng)
    }
}

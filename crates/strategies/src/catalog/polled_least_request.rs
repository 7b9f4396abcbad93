//! The least (active + 1) / weight over polled counts: the herding baseline.
//!
//! Between two polls every request sees the same counts and goes to the same backend; from about half a
//! service time between polls on it is worse than not looking at all. Without a fresh report own
//! in_flight stands in. Cost O(n).

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
            name: "weights",
            kind: Kind::Word(&["on", "off"]),
            or: &[],
            default: "on",
            summary: "whether counts are taken per weight",
        },
        measure::MAX_AGE,
    ],
    reads: &[Read::Poll, Read::InFlight],
    randomized: |_| true,
    honors_weights: HonorsWeights::Yes,
    known_flaws: &["T13", "T18"],
    ..Entry::new(
        "polled-least-request",
        Group::ServerReported,
        "the fewest requests as last polled: herds between polls",
        |spec, context| {
            Box::new(PolledLeastRequest {
                weighted: spec.is("weights", "on"),
                max_age_ns: measure::max_age_ns(spec, context),
                tied: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct PolledLeastRequest {
    weighted: bool,
    max_age_ns: u64,
    tied: Vec<BackendId>,
}

impl Strategy for PolledLeastRequest {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let (weighted, max_age_ns) = (self.weighted, self.max_age_ns);
        let side = |b: &Backend, other: &Backend| {
            let polled = measure::fresh(b, now, max_age_ns).map(|(_, active)| active);
            let active = u64::from(polled.unwrap_or(b.in_flight));
            if weighted {
                (active + 1) * u64::from(other.weight)
            } else {
                active
            }
        };
        least(backends, &mut self.tied, |a, b| side(a, b).cmp(&side(b, a)));
        choose::uniform_of(&self.tied, rng)
    }
}

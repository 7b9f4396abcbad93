//! The least (active + 1) / weight over polled counts: the herding baseline.
//!
//! Between two polls every request sees the same counts and goes to the same backend. On 4/3/2 cores it is
//! worse than `smooth-weighted-round-robin`, which looks at nothing, from this poll interval on, in mean
//! service times: 0.25 to 0.5 at load .5, 0.5 at .7, 0.75 at .8, above 1.25 at .9 (`twin run --strategy
//! polled-least-request --load L --poll 0.5S --requests 1000000 --seed 42` and so on, exponential sizes).
//! Without a fresh report own in_flight stands in. Cost O(log n); up to 16 backends are looked through.

use super::least_of::LeastOf;
use crate::backends::Backend;
use crate::measure::{self, Load, Measure};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::time::Time;

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
            let measure = PolledLeastRequest {
                per_weight: spec.is("weights", "on"),
                max_age_ns: measure::max_age_ns(spec, context),
            };
            Box::new(LeastOf::new(measure, context))
        },
    )
};

#[derive(Debug, Clone, Copy)]
struct PolledLeastRequest {
    per_weight: bool,
    max_age_ns: u64,
}

impl Measure for PolledLeastRequest {
    type Key = Load;

    fn key(&self, now: Time, backend: &Backend) -> Load {
        let polled = measure::fresh(backend, now, self.max_age_ns).map(|(_, active)| active);
        let active = u64::from(polled.unwrap_or(backend.in_flight));
        if self.per_weight {
            Load::new(active + 1, backend.weight)
        } else {
            Load::new(active, 1)
        }
    }

    fn holds_until(&self, now: Time, backend: &Backend) -> Time {
        measure::fresh_until(backend, now, self.max_age_ns)
    }
}

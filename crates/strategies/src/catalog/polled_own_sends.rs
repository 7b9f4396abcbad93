//! Polled counts, corrected by what this balancer sent (and got answered) since.
//!
//! The live estimate: own in_flight, plus what others held when the poll left. It does not herd however
//! old the report is, and never falls below own in_flight. Without a fresh report it is just that.
//! `subtract-done=off` counts sends only; it is for tables in which all backends are sampled at one
//! instant and punishes whoever was polled longest ago otherwise. Cost O(log n); up to 16 backends are
//! looked through. Source: ours, after the paper's outlook.

use super::least_of::LeastOf;
use crate::backends::Backend;
use crate::measure::{self, Load, Measure};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::time::Time;

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
            let measure = PolledOwnSends {
                subtract_done: spec.is("subtract-done", "on"),
                max_age_ns: measure::max_age_ns(spec, context),
            };
            Box::new(LeastOf::new(measure, context))
        },
    )
};

#[derive(Debug, Clone, Copy)]
struct PolledOwnSends {
    subtract_done: bool,
    max_age_ns: u64,
}

impl Measure for PolledOwnSends {
    type Key = Load;

    fn key(&self, now: Time, backend: &Backend) -> Load {
        let requests = if self.subtract_done {
            measure::live_estimate(backend, now, self.max_age_ns)
        } else {
            match measure::fresh(backend, now, self.max_age_ns) {
                Some((report, active)) => {
                    u64::from(active) + backend.sent.saturating_sub(report.sent_before)
                }
                None => u64::from(backend.in_flight),
            }
        };
        Load::new(requests + 1, backend.weight)
    }

    fn holds_until(&self, now: Time, backend: &Backend) -> Time {
        measure::fresh_until(backend, now, self.max_age_ns)
    }
}

//! Two choices on polled counts.
//!
//! Herds less than the full scan, since a stale count misleads only the picks that draw it. Without a
//! fresh report own in_flight stands in. Cost O(1). Source: the YARP form in the Prequal paper.

use crate::backends::Backends;
use crate::choose::Draws;
use crate::measure;
use crate::registry::{Entry, Group, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[measure::MAX_AGE],
    reads: &[Read::Poll, Read::InFlight],
    randomized: |_| true,
    known_flaws: &["T13", "T18"],
    ..Entry::new(
        "polled-p2c",
        Group::ServerReported,
        "two distinct at random, the one with fewer requests as last polled",
        |spec, context| {
            Box::new(PolledTwoChoices {
                max_age_ns: measure::max_age_ns(spec, context),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct PolledTwoChoices {
    max_age_ns: u64,
}

impl Strategy for PolledTwoChoices {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let pair = Draws::pair(backends, rng)?;
        Some(Draws::lower(pair, |b| {
            measure::fresh(b, now, self.max_age_ns).map_or(b.in_flight, |(_, active)| active)
        }))
    }
}

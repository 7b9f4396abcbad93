//! Two choices with probability beta, else one.
//!
//! Cost O(1). Better than two choices when loads are old or noisy; worse when they are exact. Source:
//! Peres, Talwar and Wieder 2015.

use crate::backends::Backends;
use crate::choose::{self, Draws};
use crate::registry::{Entry, Group, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::rng::unit;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[Parameter {
        name: "beta",
        kind: Kind::Decimal { min: 0.0, max: 1.0 },
        or: &[],
        default: "0.5",
        summary: "share of the picks that look at two",
    }],
    reads: &[Read::InFlight],
    randomized: |_| true,
    known_flaws: &["T13"],
    ..Entry::new(
        "one-plus-beta",
        Group::InFlight,
        "two choices with probability beta, else one at random",
        |spec, _| {
            Box::new(OnePlusBeta {
                beta: spec.decimal("beta").unwrap_or(0.5),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct OnePlusBeta {
    beta: f64,
}

impl Strategy for OnePlusBeta {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if unit(rng) >= self.beta {
            return choose::uniform(backends, rng);
        }
        let pair = Draws::pair(backends, rng)?;
        Some(Draws::lower(pair, |b| b.in_flight))
    }
}

//! The fewest requests in flight among d drawn.
//!
//! Distinct draws (default), or draws with replacement, where the same backend may come twice, as in
//! Envoy and gRPC A48. Cost O(d), exactly d loads read. The two forms differ by 4 % in mean latency at
//! ten backends, so say which one ran. Source: Mitzenmacher 2001.
//!
//! Distinct draws of as many as are eligible, or more, look at all of them, ties at random: the shortest
//! queue. So any d is taken whatever the pool, which changes while a balancer runs. The twin's pool is
//! fixed: there a d above the number of workers is a mistake, and is refused.

use crate::backends::Backends;
use crate::choose::{Credits, Draws, Ties, one_of_least};
use crate::registry::{Entry, Group, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "d",
            kind: Kind::Integer { min: 1, max: 64 },
            or: &[],
            default: "2",
            summary: "how many are drawn; distinct ones of a smaller pool: all of it",
        },
        Parameter {
            name: "replacement",
            kind: Kind::Word(&["on", "off"]),
            or: &[],
            default: "off",
            summary: "whether one backend may be drawn twice",
        },
    ],
    reads: &[Read::InFlight],
    randomized: |_| true,
    known_flaws: &["T13"],
    ..Entry::new(
        "d-choices",
        Group::InFlight,
        "the fewest requests in flight among d drawn",
        |spec, _| {
            Box::new(DChoices {
                d: spec.integer("d").unwrap_or(2) as usize,
                replacement: spec.is("replacement", "on"),
                draws: Draws::default(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct DChoices {
    d: usize,
    replacement: bool,
    draws: Draws,
}

impl Strategy for DChoices {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let n = backends.eligible_len();
        if n == 0 {
            return None;
        }
        if !self.replacement && self.d >= n {
            let credits = &mut Credits::default();
            return one_of_least(backends.eligible(), Ties::Random, credits, rng, |b| {
                b.in_flight
            });
        }
        if self.d == 2 && !self.replacement {
            let pair = Draws::pair(backends, rng)?;
            return Some(Draws::lower(pair, |b| b.in_flight));
        }
        let drawn = if self.replacement {
            self.draws.repeated(n, self.d, rng)
        } else {
            self.draws.distinct(n, self.d, rng)
        };
        // Of equals the first is kept, which is the one drawn first.
        let drawn = drawn.iter().map(|i| backends.eligible_at(*i as usize));
        drawn.min_by_key(|b| b.in_flight).map(|b| b.id)
    }
}

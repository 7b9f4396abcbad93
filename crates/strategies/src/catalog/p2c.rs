//! Power of two choices: two distinct at random, the one with fewer requests in flight.
//!
//! Cost O(1), exactly two loads read. For pools of up to about 8 a full scan is better: a slow pair
//! is drawn together with probability C(slow,2)/C(n,2), and then one of them must be taken. Source:
//! Mitzenmacher 2001; Traefik, Caddy, tower.

use crate::backends::Backends;
use crate::choose::Draws;
use crate::registry::{Entry, Group, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    reads: &[Read::InFlight],
    randomized: |_| true,
    known_flaws: &["T13"],
    ..Entry::new(
        "p2c",
        Group::InFlight,
        "two distinct at random, the one with fewer requests in flight",
        |_, _| Box::new(TwoChoices),
    )
};

#[derive(Debug, Clone)]
struct TwoChoices;

impl Strategy for TwoChoices {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let pair = Draws::pair(backends, rng)?;
        Some(Draws::lower(pair, |b| b.in_flight))
    }
}

//! One of the eligible, uniform.
//!
//! Cost O(1). Not when backends differ in capacity: everyone gets the same number of requests.

use crate::backends::Backends;
use crate::choose;
use crate::registry::{Entry, Group};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    randomized: |_| true,
    ..Entry::new(
        "random",
        Group::LoadBlind,
        "one of the eligible, uniform",
        |_, _| Box::new(Random),
    )
};

#[derive(Debug, Clone)]
struct Random;

impl Strategy for Random {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        choose::uniform(backends, rng)
    }
}

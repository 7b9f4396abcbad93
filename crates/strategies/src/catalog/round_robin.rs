//! The next eligible backend after the last picked one, in position order, wrapping.
//!
//! Cost O(1). Not when backends differ in capacity: an equal split makes the
//! smallest one the bottleneck and is unstable long before the pool is full.

use super::start::{self, Start};
use crate::backends::Backends;
use crate::registry::{Entry, Group};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::rng::below;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[start::PARAMETER],
    randomized: |spec| spec.is("start", "random"),
    ..Entry::new(
        "round-robin",
        Group::LoadBlind,
        "the next eligible after the last picked one",
        |spec, _| {
            Box::new(RoundRobin {
                start: Start::of(spec),
                last: None,
            })
        },
    )
};

#[derive(Debug, Clone)]
struct RoundRobin {
    start: Start,
    last: Option<BackendId>,
}

impl Strategy for RoundRobin {
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
        if self.start.take_random() {
            let skipped = below(rng, n as u64) as usize;
            self.last = skipped.checked_sub(1).map(|i| backends.eligible_at(i).id);
        }
        let available = backends.available_ids();
        let from = match self.last.and_then(|id| backends.available_place(id)) {
            Some(place) => place + 1,
            // Ids grow with the position, so one that is out still marks its place.
            None => available.partition_point(|id| Some(*id) <= self.last),
        };
        let mut in_turn = available[from..].iter().chain(&available[..from]);
        let next = in_turn.find(|id| backends.is_eligible(**id)).copied();
        self.last = next;
        next
    }
}

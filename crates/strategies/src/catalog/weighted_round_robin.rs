//! Blocks: each backend as often in a row as its weight says, `AAAABBBCC`.
//!
//! Cost O(log n) by prefix sums. Not when bursts hurt: a heavy backend gets its whole share at once
//! (streak 4 and 2.2 requests off the even share at 4/3/2); the smooth form has the same shares
//! without the bursts.

use super::start::{self, Start};
use crate::backends::Backends;
use crate::choose::common_divisor;
use crate::registry::{Entry, Group, HonorsWeights};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::rng::below;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[start::PARAMETER],
    randomized: |spec| spec.is("start", "random"),
    honors_weights: HonorsWeights::Yes,
    ..Entry::new(
        "weighted-round-robin",
        Group::LoadBlind,
        "blocks of weight picks each in turn (AAAABBBCC): exact shares, but bursts of streak 4 and 2.2 \
         off the even share at 4/3/2",
        |spec, _| {
            Box::new(WeightedRoundRobin {
                start: Start::of(spec),
                index: 0,
                block_ends: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct WeightedRoundRobin {
    start: Start,
    /// Picks so far; its remainder by the table's length is the place in the table.
    index: u64,
    /// Where each available backend's block ends, in weights divided by their common divisor.
    block_ends: Vec<u64>,
}

impl Strategy for WeightedRoundRobin {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if backends.eligible_len() == 0 {
            return None;
        }
        let length = *self.block_ends.last()?;
        if self.start.take_random() {
            self.index = below(rng, length);
        }
        let entry = self.index % length;
        self.index += 1;
        let block = self.block_ends.partition_point(|end| *end <= entry);
        let available = backends.available_ids();
        let mut in_turn = available[block..].iter().chain(&available[..block]);
        in_turn.find(|id| backends.is_eligible(**id)).copied()
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        let divisor = common_divisor(backends.available().map(|b| b.weight));
        self.block_ends.clear();
        let mut end = 0;
        for backend in backends.available() {
            end += u64::from(backend.weight) / divisor;
            self.block_ends.push(end);
        }
    }
}

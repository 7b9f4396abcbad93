//! Random, by weight.
//!
//! Three equivalent constructions: `list` (each backend copied as often as its weight says),
//! `cumulative` (prefix sums and binary search), `alias` (Walker 1977, Vose 1991, in integers).
//! Cost O(1), O(log n), O(1); tables O(n), for `list` O(sum of weights). Not when shares must be exact
//! over short runs: at a thousand requests a share is off by 1.6 points (one standard deviation).

use crate::backends::Backends;
use crate::choose::{WeightTable, common_divisor, weight_sum};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Longest table of the `list` construction.
pub const MAX_LIST: u64 = 1_000_000;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[Parameter {
        name: "method",
        kind: Kind::Word(&["alias", "cumulative", "list"]),
        or: &[],
        default: "cumulative",
        summary: "how the draw is made; shares are the same",
    }],
    randomized: |_| true,
    honors_weights: HonorsWeights::Yes,
    check,
    ..Entry::new(
        "weighted-random",
        Group::LoadBlind,
        "random, each as likely as its weight says",
        |spec, _| {
            Box::new(WeightedRandom {
                table: if spec.is("method", "alias") {
                    WeightTable::ALIAS
                } else if spec.is("method", "list") {
                    WeightTable::LIST
                } else {
                    WeightTable::CUMULATIVE
                },
            })
        },
    )
};

fn check(spec: &Spec, backends: &Backends) -> Result<(), String> {
    let divisor = common_divisor(backends.members().map(|b| b.weight));
    let length = weight_sum(backends.members()) / divisor;
    if spec.is("method", "list") && length > MAX_LIST {
        return Err(format!(
            "weighted-random:method=list would need {length} entries (allowed: at most {MAX_LIST}); \
             use method=cumulative"
        ));
    }
    Ok(())
}

#[derive(Debug, Clone)]
struct WeightedRandom {
    table: WeightTable,
}

impl Strategy for WeightedRandom {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        self.table.draw_eligible(backends, rng)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.table.rebuild(backends);
    }
}

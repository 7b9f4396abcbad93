//! Two choices on requests in flight per weight.
//!
//! Two distinct backends, drawn uniformly or by weight, the one with the lower (in_flight + 1) / weight;
//! the first drawn on equality. Cost O(1). For small pools a full scan (`weighted-least-request`) is
//! better. Source: ours, after p2c.

use crate::backends::{Backend, Backends};
use crate::choose::{Draws, WeightTable};
use crate::measure::Load;
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[Parameter {
        name: "draw",
        kind: Kind::Word(&["uniform", "weighted"]),
        or: &[],
        default: "uniform",
        summary: "how the two are drawn",
    }],
    reads: &[Read::InFlight],
    randomized: |_| true,
    honors_weights: HonorsWeights::Yes,
    known_flaws: &["T13"],
    ..Entry::new(
        "weighted-p2c",
        Group::InFlight,
        "two distinct at random, the one with fewer requests in flight for its weight",
        |spec, _| {
            Box::new(WeightedTwoChoices {
                by_weight: spec.is("draw", "weighted").then_some(WeightTable::ALIAS),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct WeightedTwoChoices {
    by_weight: Option<WeightTable>,
}

impl Strategy for WeightedTwoChoices {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let (first, second) = match &self.by_weight {
            Some(table) if backends.eligible_len() > 1 => {
                let first = table.draw_eligible(backends, rng)?;
                let second = table.draw_other(backends, Some(first), rng)?;
                (backends.get(first)?, backends.get(second)?)
            }
            _ => Draws::pair(backends, rng)?,
        };
        let load = |b: &Backend| Load::new(u64::from(b.in_flight) + 1, b.weight);
        Some(Draws::lower((first, second), load))
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        if let Some(table) = &mut self.by_weight {
            table.rebuild(backends);
        }
    }
}

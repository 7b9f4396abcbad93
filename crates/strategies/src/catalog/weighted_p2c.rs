//! Two choices on requests in flight per weight.
//!
//! Two distinct backends, drawn uniformly or by weight, the one with the lower (in_flight + 1) / weight;
//! the first drawn on equality. Cost O(1). For small pools a full scan (`weighted-least-request`) is
//! better. Source: ours, after p2c.

use crate::backends::{Backend, Backends};
use crate::choose::{Draws, WeightTable, weight_sum};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::rng::below;

/// Draws that may hit the first one or a left-out one before the rest is summed up instead.
const MAX_REDRAWS: u32 = 8;

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
                by_weight: spec
                    .is("draw", "weighted")
                    .then(|| WeightTable::Alias(Vec::new(), 0)),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct WeightedTwoChoices {
    by_weight: Option<WeightTable>,
}

/// One eligible by weight, but not `except`; `None` if there is no other.
fn draw<'a>(
    table: &WeightTable,
    backends: &'a Backends,
    except: Option<BackendId>,
    rng: &mut Rng,
) -> Option<&'a Backend> {
    for _ in 0..MAX_REDRAWS {
        let id = backends.available_ids()[table.draw(rng)?];
        if backends.is_eligible(id) && Some(id) != except {
            return backends.get(id);
        }
    }
    let rest = backends.eligible().filter(|b| Some(b.id) != except);
    let sum = weight_sum(rest.clone());
    if sum == 0 {
        return None;
    }
    let mut r = below(rng, sum);
    for backend in rest {
        if r < u64::from(backend.weight) {
            return Some(backend);
        }
        r -= u64::from(backend.weight);
    }
    None
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
                let first = draw(table, backends, None, rng)?;
                let second = draw(table, backends, Some(first.id), rng)?;
                (first, second)
            }
            _ => Draws::pair(backends, rng)?,
        };
        let side = |q: &Backend, w: &Backend| (u64::from(q.in_flight) + 1) * u64::from(w.weight);
        let second_is_less = side(second, first) < side(first, second);
        Some(if second_is_less { second.id } else { first.id })
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        if let Some(table) = &mut self.by_weight {
            table.rebuild(backends);
        }
    }
}

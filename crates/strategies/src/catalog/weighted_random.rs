//! Random, by weight.
//!
//! Three equivalent constructions: `list` (each backend copied as often as its weight says),
//! `cumulative` (prefix sums and binary search), `alias` (Walker 1977, Vose 1991, in integers).
//! Cost O(1), O(log n), O(1); tables O(n), for `list` O(sum of weights). Not when shares must be exact
//! over short runs: at a thousand requests a share is off by 1.6 points (one standard deviation).

use crate::backends::Backends;
use crate::choose::{self, common_divisor, weight_sum};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::rng::below;

/// Longest table of the `list` construction.
pub const MAX_LIST: u64 = 1_000_000;
/// Draws that may hit a left-out backend before the eligible are summed up instead.
const MAX_REDRAWS: u32 = 8;

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
                    Table::Alias(Vec::new(), 0)
                } else if spec.is("method", "list") {
                    Table::List(Vec::new())
                } else {
                    Table::Cumulative(Vec::new())
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
    table: Table,
}

/// Tables over the available backends; numbers are places among them.
#[derive(Debug, Clone)]
enum Table {
    List(Vec<u32>),
    /// Sum of the weights up to and including each.
    Cumulative(Vec<u64>),
    /// Cells, and the sum of the weights, which is the size of a cell.
    Alias(Vec<Cell>, u64),
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    threshold: u64,
    alias: u32,
}

impl Table {
    fn rebuild(&mut self, backends: &Backends) {
        let weights = || backends.available().map(|b| u64::from(b.weight));
        match self {
            Self::Cumulative(sums) => {
                sums.clear();
                sums.extend(weights().scan(0, |sum, w| {
                    *sum += w;
                    Some(*sum)
                }));
            }
            Self::List(places) => {
                let divisor = common_divisor(backends.available().map(|b| b.weight));
                places.clear();
                for (place, weight) in weights().enumerate() {
                    let copies = (weight / divisor) as usize;
                    places.extend(std::iter::repeat_n(place as u32, copies));
                }
            }
            Self::Alias(cells, size) => {
                *size = weights().sum();
                fill_cells(cells, weights(), *size);
            }
        }
    }

    fn draw(&self, rng: &mut Rng) -> Option<usize> {
        match self {
            Self::List(places) => {
                let n = places.len() as u64;
                (n > 0).then(|| places[below(rng, n) as usize] as usize)
            }
            Self::Cumulative(sums) => {
                let r = below(rng, *sums.last()?);
                Some(sums.partition_point(|sum| *sum <= r))
            }
            Self::Alias(cells, size) => {
                if cells.is_empty() {
                    return None;
                }
                let r = below(rng, cells.len() as u64 * size);
                let (at, rest) = ((r / size) as usize, r % size);
                let cell = cells[at];
                Some(if rest < cell.threshold {
                    at
                } else {
                    cell.alias as usize
                })
            }
        }
    }
}

/// Vose's filling in integers: weights scaled by n against cells of size W, so nothing is rounded.
fn fill_cells(cells: &mut Vec<Cell>, weights: impl Iterator<Item = u64>, size: u64) {
    let mut scaled: Vec<u64> = weights.collect();
    let n = scaled.len();
    for weight in &mut scaled {
        *weight *= n as u64;
    }
    cells.clear();
    cells.extend((0..n).map(|i| Cell {
        threshold: size,
        alias: i as u32,
    }));
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| scaled[*i] < size);
    while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
        cells[less] = Cell {
            threshold: scaled[less],
            alias: more as u32,
        };
        scaled[more] -= size - scaled[less];
        if scaled[more] < size {
            large.pop();
            small.push(more);
        }
    }
}

impl Strategy for WeightedRandom {
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
        for _ in 0..=MAX_REDRAWS {
            let id = backends.available_ids()[self.table.draw(rng)?];
            if backends.is_eligible(id) {
                return Some(id);
            }
        }
        choose::weighted(backends, rng)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.table.rebuild(backends);
    }
}

//! Tables for draws by weight, over the available backends.

use super::{common_divisor, weighted};
use crate::backends::Backends;
use crate::strategy::Rng;
use crate::values::BackendId;
use schema::rng::below;

/// Draws that may hit somebody unwanted before the wanted are summed up instead.
const MAX_REDRAWS: u32 = 8;

/// Tables over the available backends; numbers are places among them.
#[derive(Debug, Clone)]
pub enum WeightTable {
    /// Every place as often as its weight says.
    List(Vec<u32>),
    /// Sum of the weights up to and including each.
    Cumulative(Vec<u64>),
    /// Cells, and the sum of the weights, which is the size of a cell.
    Alias(Vec<Cell>, u64),
}

impl WeightTable {
    /// An alias table: O(1) per draw.
    pub const ALIAS: Self = Self::Alias(Vec::new(), 0);
    /// Prefix sums: O(log n) per draw.
    pub const CUMULATIVE: Self = Self::Cumulative(Vec::new());
    /// Copies: O(1) per draw, O(sum of weights) of memory.
    pub const LIST: Self = Self::List(Vec::new());
}

/// A cell of an alias table: below the threshold it stands for itself.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    threshold: u64,
    alias: u32,
}

impl WeightTable {
    /// Fills the table anew; O(n), for the list O(sum of weights).
    pub fn rebuild(&mut self, backends: &Backends) {
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

    /// Draws a place, as likely as its weight says; `None` if the table is empty.
    pub fn draw(&self, rng: &mut Rng) -> Option<usize> {
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

impl WeightTable {
    /// An eligible one by weight. A draw that falls on one left out of this pick is made again, a few
    /// times at most.
    pub fn draw_eligible(&self, backends: &Backends, rng: &mut Rng) -> Option<BackendId> {
        self.draw_other(backends, None, rng)
    }

    /// The same, but not `except`.
    pub fn draw_other(
        &self,
        backends: &Backends,
        except: Option<BackendId>,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if backends.eligible_len() == 0 {
            return None;
        }
        for _ in 0..=MAX_REDRAWS {
            let id = backends.available_ids()[self.draw(rng)?];
            if backends.is_eligible(id) && Some(id) != except {
                return Some(id);
            }
        }
        weighted(backends.eligible().filter(|b| Some(b.id) != except), rng)
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

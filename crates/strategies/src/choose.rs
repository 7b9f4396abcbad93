//! Rules of choosing that strategies share: draws, the least of some, ties, turns.
//!
//! Measuring a backend (its in_flight, a mean, a prediction) and choosing among backends are
//! separate things: a strategy brings the measure, these bring the choice. Up to [`FEW`] backends are
//! looked through at each pick, which is cheapest; for larger pools [`Lengths`], [`LengthTurns`],
//! [`Ranking`] and [`Turns`] keep an order up as things happen, so that a pick costs the same however large the pool is. They
//! give the picks of the plain look-through, which stays as the test of them.

mod credits;
mod draws;
mod least;
mod length_turns;
mod lengths;
mod ranking;
mod table;
mod tournament;
mod turns;

pub use credits::Credits;
pub use draws::Draws;
pub use least::Ties;
pub(crate) use least::{Least, least, one_of_least, one_of_least_eligible, one_of_least_keyed};
pub(crate) use length_turns::LengthTurns;
pub(crate) use lengths::{Lengths, MAX_WEIGHTS};
pub(crate) use ranking::Ranking;
pub use table::WeightTable;
pub(crate) use tournament::Tournament;
pub(crate) use turns::Turns;

use crate::backends::{Backend, Backends};
use crate::strategy::Rng;
use crate::values::BackendId;
use schema::rng::below;

/// Pools up to this size are looked through at each pick: up to here that is as fast as any upkeep.
pub const FEW: usize = 16;

/// A comparable number of a backend; the least is picked.
pub(crate) trait Key: Ord + Copy + std::fmt::Debug + Send + 'static {
    /// After every other: of whom cannot be ranked by itself, or of nobody.
    const LAST: Self;
}

impl Key for crate::Time {
    const LAST: Self = Self::MAX;
}

impl Key for i64 {
    const LAST: Self = Self::MAX;
}

/// Greatest common divisor; of nothing it is 1.
pub fn common_divisor(weights: impl Iterator<Item = u32>) -> u64 {
    fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    weights.fold(0, |g, w| gcd(g, u64::from(w))).max(1)
}

/// Sum of the weights.
pub fn weight_sum<'a>(backends: impl Iterator<Item = &'a Backend>) -> u64 {
    backends.map(|b| u64::from(b.weight)).sum()
}

/// A uniform draw among the eligible.
pub fn uniform(backends: &Backends, rng: &mut Rng) -> Option<BackendId> {
    let n = backends.eligible_len() as u64;
    (n > 0).then(|| backends.eligible_at(below(rng, n) as usize).id)
}

/// A draw by weight among some, given anew for each look-through; O(n). `None`, and nothing drawn, if
/// there is nobody.
pub fn weighted<'a>(
    among: impl Iterator<Item = &'a Backend> + Clone,
    rng: &mut Rng,
) -> Option<BackendId> {
    let sum = weight_sum(among.clone());
    if sum == 0 {
        return None;
    }
    let mut r = below(rng, sum);
    for backend in among {
        if r < u64::from(backend.weight) {
            return Some(backend.id);
        }
        r -= u64::from(backend.weight);
    }
    unreachable!("the draw is below the sum of the weights")
}

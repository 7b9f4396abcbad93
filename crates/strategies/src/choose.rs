//! Rules of choosing that strategies share: the least of some, ties, the smooth step.
//!
//! Measuring a backend (its in_flight, a mean, a prediction) and choosing among backends are
//! separate things: a strategy brings the comparison, these bring the choice.

mod draws;
mod table;

pub use draws::Draws;
pub use table::WeightTable;

use crate::backends::{Backend, Backends};
use crate::measure::Rank;
use crate::strategy::Rng;
use crate::values::BackendId;
use schema::rng::below;
use std::cmp::Ordering;

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

/// A draw among the eligible, by weight; O(n).
pub fn weighted(backends: &Backends, rng: &mut Rng) -> Option<BackendId> {
    let sum = weight_sum(backends.eligible());
    if sum == 0 {
        return None;
    }
    let mut r = below(rng, sum);
    for backend in backends.eligible() {
        if r < u64::from(backend.weight) {
            return Some(backend.id);
        }
        r -= u64::from(backend.weight);
    }
    unreachable!("the draw is below the sum of the weights")
}

/// Fills `tied` with the eligible that no other one is less than, in position order.
pub fn least(
    backends: &Backends,
    tied: &mut Vec<BackendId>,
    mut compare: impl FnMut(&Backend, &Backend) -> Ordering,
) {
    tied.clear();
    let mut best: Option<&Backend> = None;
    for backend in backends.eligible() {
        match best.map_or(Ordering::Less, |b| compare(backend, b)) {
            Ordering::Less => {
                best = Some(backend);
                tied.clear();
                tied.push(backend.id);
            }
            Ordering::Equal => tied.push(backend.id),
            Ordering::Greater => {}
        }
    }
}

/// Fills `tied` with those of the least rank, in the order given.
pub(crate) fn least_ranked(ranks: &[(BackendId, Rank)], tied: &mut Vec<BackendId>) {
    tied.clear();
    let mut best: Option<Rank> = None;
    for (id, rank) in ranks {
        match best.map_or(Ordering::Less, |b| rank.compare(b)) {
            Ordering::Less => {
                best = Some(*rank);
                tied.clear();
                tied.push(*id);
            }
            Ordering::Equal => tied.push(*id),
            Ordering::Greater => {}
        }
    }
}

/// A draw by weight among some, without a draw if there is only one.
pub fn weighted_of(tied: &[BackendId], backends: &Backends, rng: &mut Rng) -> Option<BackendId> {
    if tied.len() < 2 {
        return tied.first().copied();
    }
    let among = || tied.iter().filter_map(|id| backends.get(*id));
    let mut r = below(rng, weight_sum(among()));
    for backend in among() {
        if r < u64::from(backend.weight) {
            return Some(backend.id);
        }
        r -= u64::from(backend.weight);
    }
    unreachable!("the draw is below the sum of the weights")
}

/// How equals are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// Uniform, one draw and only if there is a tie.
    Random,
    /// A smooth step over the tied.
    Smooth,
    /// The lowest position.
    Lowest,
}

impl Ties {
    /// The words of a `ties` parameter.
    pub const WORDS: &'static [&'static str] = &["smooth", "random", "lowest"];

    /// The rule that the parameter `ties` of a spec names.
    pub fn of(spec: &crate::Spec) -> Self {
        if spec.is("ties", "smooth") {
            Self::Smooth
        } else if spec.is("ties", "random") {
            Self::Random
        } else {
            Self::Lowest
        }
    }

    /// One of the tied; `None` if there is none.
    pub fn choose(
        self,
        tied: &[BackendId],
        credits: &mut Credits,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        match self {
            Self::Lowest => tied.first().copied(),
            Self::Random => uniform_of(tied, rng),
            Self::Smooth => {
                let weighted = tied.iter().filter_map(|id| backends.get(*id));
                credits.step(weighted.map(|b| (b.id, i64::from(b.weight))))
            }
        }
    }
}

/// A uniform draw among some, without a draw if there is only one.
pub fn uniform_of(tied: &[BackendId], rng: &mut Rng) -> Option<BackendId> {
    match tied {
        [] => None,
        [one] => Some(*one),
        many => Some(many[below(rng, many.len() as u64) as usize]),
    }
}

/// Credits of the smooth step, by id; new backends start at 0.
///
/// Each step adds its weight to everyone in the set and takes the sum from the one with the largest
/// credit (lowest position on equality), who is chosen. Those outside the set keep their credit.
#[derive(Debug, Clone, Default)]
pub struct Credits(Vec<i64>);

impl Credits {
    /// One step over a set given in position order.
    pub fn step(&mut self, set: impl Iterator<Item = (BackendId, i64)>) -> Option<BackendId> {
        let mut chosen: Option<(BackendId, i64)> = None;
        let mut sum = 0;
        for (id, weight) in set {
            if id.index() >= self.0.len() {
                self.0.resize(id.index() + 1, 0);
            }
            let credit = &mut self.0[id.index()];
            *credit += weight;
            sum += weight;
            if chosen.is_none_or(|(_, best)| *credit > best) {
                chosen = Some((id, *credit));
            }
        }
        let (id, _) = chosen?;
        self.0[id.index()] -= sum;
        Some(id)
    }

    /// A credit; 0 if it never took part.
    pub fn of(&self, id: BackendId) -> i64 {
        self.0.get(id.index()).copied().unwrap_or(0)
    }

    /// Sets a credit.
    pub fn set(&mut self, id: BackendId, credit: i64) {
        if id.index() >= self.0.len() {
            self.0.resize(id.index() + 1, 0);
        }
        self.0[id.index()] = credit;
    }

    /// After a change of members or weights: room for every id, and no credit beyond the sum of all
    /// weights either way.
    pub fn on_backends_changed(&mut self, backends: &Backends) {
        self.0.resize(backends.ids_len(), 0);
        let bound = weight_sum(backends.members()) as i64;
        for credit in &mut self.0 {
            *credit = (*credit).clamp(-bound, bound);
        }
    }
}

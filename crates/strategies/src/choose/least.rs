//! The least of some by looking through all of them, and how equals are told apart.

use super::{Credits, weighted};
use crate::backends::{Backend, Backends};
use crate::strategy::Rng;
use crate::values::BackendId;
use schema::rng::below;
use std::cmp::Ordering;
use std::hint::select_unpredictable;

/// The least key among some, who has it first, and how many have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Least<K> {
    pub(crate) key: K,
    pub(crate) first: BackendId,
    pub(crate) count: u32,
    /// Bit i: the i-th looked at has it.
    tied: u64,
    /// Whether at most 64 were looked at, so that the bits tell all.
    has_all: bool,
}

/// Looks through some for the least key; `None` of nobody.
#[inline]
pub(crate) fn least<'a, K: Ord + Copy>(
    mut among: impl Iterator<Item = &'a Backend>,
    key: impl Fn(&Backend) -> K,
) -> Option<Least<K>> {
    let first = among.next()?;
    let (mut least, mut first) = (key(first), first.id);
    let (mut tied, mut bit) = (1_u64, 1_u64);
    let mut count = 1;
    among.for_each(|backend| {
        bit <<= 1;
        let key = key(backend);
        // Without branches: who is next is anybody's guess.
        let order = key.cmp(&least);
        let (is_less, is_greater) = (order.is_lt(), order.is_gt());
        tied = select_unpredictable(is_less, 0, tied);
        count = select_unpredictable(is_less, 0, count);
        tied |= select_unpredictable(is_greater, 0, bit);
        count += u32::from(!is_greater);
        first = select_unpredictable(is_less, backend.id, first);
        least = select_unpredictable(is_less, key, least);
    });
    Some(Least {
        key: least,
        first,
        count,
        tied,
        // After the 64th there is no bit left to remember by.
        has_all: bit > 0,
    })
}

impl<K: Ord + Copy> Least<K> {
    /// One of those that have it, among the same as were looked through.
    #[inline]
    pub(crate) fn one<'a>(
        self,
        among: impl Iterator<Item = &'a Backend> + Clone,
        ties: Ties,
        credits: &mut Credits,
        rng: &mut Rng,
        key: impl Fn(&Backend) -> K,
    ) -> Option<BackendId> {
        if self.count == 1 {
            return Some(self.first);
        }
        if ties == Ties::Random {
            return self.nth(below(rng, u64::from(self.count)) as u32, among, key);
        }
        let count = self.count as usize;
        if self.has_all {
            let bits = self.tied;
            let tied = among
                .zip(0..)
                .filter(move |(_, i)| bits >> i & 1 == 1)
                .map(|(b, _)| b);
            return ties.among(count, tied, credits, rng);
        }
        ties.among(count, among.filter(|b| key(b) == self.key), credits, rng)
    }

    /// The `i`-th of those that have it, among the same as were looked through.
    fn nth<'a>(
        &self,
        i: u32,
        mut among: impl Iterator<Item = &'a Backend>,
        key: impl Fn(&Backend) -> K,
    ) -> Option<BackendId> {
        if !self.has_all {
            let mut tied = among.filter(|b| key(b) == self.key);
            return tied.nth(i as usize).map(|b| b.id);
        }
        let mut tied = self.tied;
        for _ in 0..i {
            tied &= tied - 1;
        }
        among.nth(tied.trailing_zeros() as usize).map(|b| b.id)
    }
}

/// One of some whose key is least; O(n).
#[inline]
pub(crate) fn one_of_least<'a, K: Ord + Copy>(
    among: impl Iterator<Item = &'a Backend> + Clone,
    ties: Ties,
    credits: &mut Credits,
    rng: &mut Rng,
    key: impl Fn(&Backend) -> K,
) -> Option<BackendId> {
    least(among.clone(), &key)?.one(among, ties, credits, rng, key)
}

/// One of the eligible whose key is least; O(n).
#[inline]
pub(crate) fn one_of_least_eligible<K: Ord + Copy>(
    backends: &Backends,
    ties: Ties,
    credits: &mut Credits,
    rng: &mut Rng,
    key: impl Fn(&Backend) -> K,
) -> Option<BackendId> {
    if let Some(all) = backends.eligible_slice() {
        one_of_least(all.iter(), ties, credits, rng, key)
    } else {
        one_of_least(backends.eligible(), ties, credits, rng, key)
    }
}

/// One of those with the least key, where keys were made beforehand; ties random. O(n).
pub(crate) fn one_of_least_keyed<K: Ord + Copy>(
    keyed: impl Iterator<Item = (BackendId, K)> + Clone,
    rng: &mut Rng,
) -> Option<BackendId> {
    let mut all = keyed.clone();
    let (mut first, mut least) = all.next()?;
    let mut count = 1;
    for (id, key) in all {
        match key.cmp(&least) {
            Ordering::Less => (first, least, count) = (id, key, 1),
            Ordering::Equal => count += 1,
            Ordering::Greater => {}
        }
    }
    if count == 1 {
        return Some(first);
    }
    let mut tied = keyed.filter(|(_, key)| *key == least);
    tied.nth(below(rng, count) as usize).map(|(id, _)| id)
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
    /// A draw by weight, and only if there is a tie.
    ByWeight,
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

    /// One of several, given in position order; `count` is how many.
    pub fn among<'a>(
        self,
        count: usize,
        mut tied: impl Iterator<Item = &'a Backend> + Clone,
        credits: &mut Credits,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        match self {
            Self::Lowest => tied.next().map(|b| b.id),
            Self::Random => {
                let i = if count > 1 {
                    below(rng, count as u64)
                } else {
                    0
                };
                tied.nth(i as usize).map(|b| b.id)
            }
            Self::Smooth => credits.step_over(tied),
            Self::ByWeight if count > 1 => weighted(tied, rng),
            Self::ByWeight => tied.next().map(|b| b.id),
        }
    }
}

//! Comparable numbers: a whole amount per weight, and a load with probation before it.

use crate::backends::MAX_WEIGHT;
use crate::choose::Key;
use std::cmp::Ordering;

/// An amount per weight, compared by cross-multiplication in integers: equal means equal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) amount: u64,
    pub(crate) weight: u32,
}

impl Load {
    /// Largest amount: its product with a weight does not overflow.
    pub(crate) const MOST: u64 = u64::MAX / (MAX_WEIGHT as u64);

    /// An amount up to [`Self::MOST`] for a weight.
    #[inline]
    pub(crate) fn new(amount: u64, weight: u32) -> Self {
        debug_assert!(amount <= Self::MOST && weight <= MAX_WEIGHT);
        Self { amount, weight }
    }
}

impl Ord for Load {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let mine = self.amount * u64::from(other.weight);
        mine.cmp(&(other.amount * u64::from(self.weight)))
    }
}

impl PartialOrd for Load {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Load {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Load {}

impl Key for Load {
    /// Something for a weight of nothing.
    const LAST: Self = Self {
        amount: 1,
        weight: 0,
    };
}

/// A load that needs samples: an idle backend without one comes first, a busy one without one cannot be
/// ranked by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rank {
    turn: u8,
    load: f64,
}

impl Rank {
    /// An idle backend without a sample.
    pub(crate) const FIRST: Self = Self { turn: 0, load: 0.0 };

    /// A backend with this load.
    pub(crate) fn of_load(load: f64) -> Self {
        Self { turn: 1, load }
    }
}

impl Ord for Rank {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.turn
            .cmp(&other.turn)
            .then(self.load.total_cmp(&other.load))
    }
}

impl PartialOrd for Rank {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}

impl Key for Rank {
    const LAST: Self = Self { turn: 2, load: 0.0 };
}

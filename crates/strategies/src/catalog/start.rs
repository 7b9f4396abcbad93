//! Where a rotation begins: at its first place, or where a seeded draw puts it.

use crate::backends::Backend;
use crate::choose::{common_divisor, weight_sum};
use crate::registry::{Kind, Parameter, Spec};
use crate::strategy::Rng;
use schema::rng::below;

/// Above this many picks a random start is drawn directly instead of being walked to.
const MAX_DISCARDED: u64 = 100_000;

/// The parameter `start`.
pub(super) const PARAMETER: Parameter = Parameter {
    name: "start",
    kind: Kind::Word(&["first", "random"]),
    or: &[],
    default: "first",
    summary: "where the rotation begins; random keeps many balancers from starting alike",
};

/// Where a rotation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// At its first place; also: already begun.
    First,
    /// Where a draw at the first pick puts it.
    Random,
}

impl Start {
    /// What the parameter `start` says.
    pub(super) fn of(spec: &Spec) -> Self {
        if spec.is("start", "random") {
            Self::Random
        } else {
            Self::First
        }
    }

    /// True once, at the first pick of a random start.
    pub(super) fn take_random(&mut self) -> bool {
        std::mem::replace(self, Self::First) == Self::Random
    }
}

/// Picks after which a weighted rotation over these backends repeats.
pub(super) fn period<'a>(backends: impl Iterator<Item = &'a Backend> + Clone) -> u64 {
    weight_sum(backends.clone()) / common_divisor(backends.map(|b| b.weight))
}

/// How many picks to make and discard to begin at a uniform place of the period; `None`, and
/// nothing drawn, if that is too long a walk and the state has to be drawn directly.
pub(super) fn picks_to_discard(period: u64, rng: &mut Rng) -> Option<u64> {
    (period <= MAX_DISCARDED).then(|| below(rng, period))
}

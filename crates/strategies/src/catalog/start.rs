//! Where a rotation begins: at its first place, or where a seeded draw puts it.

use crate::registry::{Kind, Parameter, Spec};

/// Above this many picks a random start is drawn directly instead of being walked to.
pub(super) const MAX_DISCARDED: u64 = 100_000;

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

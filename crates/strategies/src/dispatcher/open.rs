//! Dispatches that are not answered yet, by their running number.
//!
//! Chains of slots that are used again: taking one up and giving it back are a few instructions, and
//! nothing is allocated below the largest number open so far.

use crate::time::Time;
use crate::values::BackendId;

/// No slot.
const NONE: u32 = u32::MAX;
/// Chains at first; a power of two.
const FEWEST_CHAINS: usize = 32;
/// Chains per slot, so that most have one slot at most.
const CHAINS_PER_SLOT: usize = 2;

/// What is remembered of a dispatch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) at: Time,
    pub(super) backend: BackendId,
    pub(super) class: u32,
    /// The backend's in_flight just after.
    pub(super) in_flight: u32,
    /// The backend's time in or out of service in which it began.
    pub(super) spell: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    dispatch: u64,
    open: Open,
    /// The next slot of the same chain, or of the free ones.
    next: u32,
}

/// The open dispatches; at most 2^32 - 1.
#[derive(Debug, Clone)]
pub(super) struct OpenDispatches {
    /// By chain: its first slot. A power of two.
    heads: Vec<u32>,
    slots: Vec<Slot>,
    free: u32,
    len: usize,
}

impl Default for OpenDispatches {
    fn default() -> Self {
        Self {
            heads: vec![NONE; FEWEST_CHAINS],
            slots: Vec::new(),
            free: NONE,
            len: 0,
        }
    }
}

impl OpenDispatches {
    /// Takes up a dispatch whose number was not used before.
    #[inline]
    pub(super) fn insert(&mut self, dispatch: u64, open: Open) {
        let at = self.free_slot();
        let chain = self.chain(dispatch);
        self.free = self.slots[at as usize].next;
        self.slots[at as usize] = Slot {
            dispatch,
            open,
            next: self.heads[chain],
        };
        self.heads[chain] = at;
        self.len += 1;
    }

    /// Gives a dispatch back; `None` if it is not open.
    #[inline]
    pub(super) fn remove(&mut self, dispatch: u64) -> Option<Open> {
        let chain = self.chain(dispatch);
        let (mut before, mut at) = (NONE, self.heads[chain]);
        while self.slots.get(at as usize)?.dispatch != dispatch {
            (before, at) = (at, self.slots[at as usize].next);
        }
        let Slot { open, next, .. } = self.slots[at as usize];
        match before {
            NONE => self.heads[chain] = next,
            before => self.slots[before as usize].next = next,
        }
        self.slots[at as usize].next = self.free;
        self.free = at;
        self.len -= 1;
        Some(open)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Running numbers spread by themselves.
    #[inline]
    fn chain(&self, dispatch: u64) -> usize {
        dispatch as usize & (self.heads.len() - 1)
    }

    fn free_slot(&mut self) -> u32 {
        if self.free == NONE {
            self.add_slot();
        }
        self.free
    }

    #[cold]
    fn add_slot(&mut self) {
        if CHAINS_PER_SLOT * self.slots.len() >= self.heads.len() {
            self.double_the_chains();
        }
        self.free = u32::try_from(self.slots.len()).expect("fewer than 2^32 dispatches are open");
        self.slots.push(Slot {
            dispatch: u64::MAX,
            open: Open {
                at: Time::ZERO,
                backend: BackendId(0),
                class: 0,
                in_flight: 0,
                spell: 0,
            },
            next: NONE,
        });
    }

    /// Every slot is in use when this is called.
    fn double_the_chains(&mut self) {
        let chains = 2 * self.heads.len();
        self.heads.clear();
        self.heads.resize(chains, NONE);
        for at in 0..self.slots.len() {
            let chain = self.chain(self.slots[at].dispatch);
            self.slots[at].next = self.heads[chain];
            self.heads[chain] = at as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Open, OpenDispatches};
    use crate::time::Time;
    use crate::values::BackendId;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn open(class: u32) -> Open {
        Open {
            at: Time::ZERO,
            backend: BackendId(0),
            class,
            in_flight: 1,
            spell: 0,
        }
    }

    proptest! {
        /// Numbers grow; any of the open ones, or one that is not, is given back.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((any::<bool>(), any::<u64>()), 0..2000)) {
            let mut table = OpenDispatches::default();
            let mut model: BTreeMap<u64, u32> = BTreeMap::new();
            let mut next = 0;
            for (takes_up, draw) in steps {
                if takes_up {
                    next += 1 + draw % 3;
                    table.insert(next, open(draw as u32));
                    model.insert(next, draw as u32);
                } else {
                    let number = draw % (next + 2);
                    let known = model.remove(&number);
                    prop_assert_eq!(table.remove(number).map(|o| o.class), known);
                }
                prop_assert_eq!(table.len(), model.len());
            }
            for (number, class) in model {
                prop_assert_eq!(table.remove(number).map(|o| o.class), Some(class));
            }
        }
    }
}

//! The stride walk: backends in turn, each taken only in the rounds that its scaled weight selects.
//!
//! A place is passed over in most rounds if its weight is small, so a walk may take n steps per pick. For
//! a large pool a heap holds the next round of each place instead.

use crate::backends::Backends;
use crate::values::BackendId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The largest scaled weight; one with it is taken in every round.
pub(super) const FULL: u64 = 65_535;
/// Shifts the rounds of neighbors against each other.
const SHIFT: u64 = 32_767;

/// State of a walk over the available backends.
#[derive(Debug, Clone)]
pub(super) struct Stride {
    few: usize,
    /// Steps so far: the next one is at place `sequence % n` in round `sequence / n`.
    sequence: u64,
    /// By place among the available; the largest is [`FULL`].
    scaled: Vec<u32>,
    /// For a large pool: the next round and place of everyone.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    aside: Vec<u32>,
}

impl Stride {
    /// Walks over pools of up to `few`.
    pub(super) fn new(few: usize) -> Self {
        Self {
            few,
            sequence: 0,
            scaled: Vec::new(),
            next: BinaryHeap::new(),
            aside: Vec::new(),
        }
    }

    /// Takes new weights, by place among the available. The sequence goes on.
    pub(super) fn set_weights(&mut self, weights: impl Iterator<Item = f64> + Clone) {
        let largest = weights.clone().fold(0.0, f64::max);
        self.scaled.clear();
        self.scaled.extend(weights.map(|w| {
            let scaled = libm::floor(w / largest * FULL as f64 + 0.5);
            (scaled as u32).clamp(1, FULL as u32)
        }));
        self.line_up();
    }

    /// Goes to another place of the sequence.
    pub(super) fn jump(&mut self, sequence: u64) {
        self.sequence = sequence;
        self.line_up();
    }

    fn line_up(&mut self) {
        self.next.clear();
        if self.scaled.len() > self.few {
            let places = 0..self.scaled.len() as u32;
            let mut all = std::mem::take(&mut self.next).into_vec();
            all.extend(places.map(|place| Reverse((self.next_round(place), place))));
            self.next = all.into();
        }
    }

    /// The next eligible one. Those left out of this pick lose the turns passed over.
    pub(super) fn next(&mut self, backends: &Backends) -> Option<BackendId> {
        if self.scaled.is_empty() || backends.eligible_len() == 0 {
            return None;
        }
        let place = if self.next.is_empty() {
            self.walk(backends).or_else(|| self.leap(backends))?
        } else {
            self.pop(backends)?
        };
        Some(backends.available_ids()[place as usize])
    }

    /// At most two rounds on foot.
    fn walk(&mut self, backends: &Backends) -> Option<u32> {
        let n = self.scaled.len() as u64;
        let (mut place, mut round) = (self.sequence % n, self.sequence / n);
        for _ in 0..2 * n {
            self.sequence += 1;
            let id = backends.available_ids()[place as usize];
            if self.selects(place, round) && backends.is_eligible(id) {
                return Some(place as u32);
            }
            place += 1;
            if place == n {
                (place, round) = (0, round + 1);
            }
        }
        None
    }

    /// To the first turn of somebody eligible, however far that is.
    fn leap(&mut self, backends: &Backends) -> Option<u32> {
        let ids = backends.available_ids();
        let places = (0..ids.len() as u32).filter(|p| backends.is_eligible(ids[*p as usize]));
        let (round, place) = places.map(|p| (self.next_round(p), p)).min()?;
        self.move_past(round, place);
        Some(place)
    }

    fn pop(&mut self, backends: &Backends) -> Option<u32> {
        let ids = backends.available_ids();
        let place = loop {
            let Reverse((round, place)) = *self.next.peek()?;
            if backends.is_eligible(ids[place as usize]) {
                self.move_past(round, place);
                let after = self.next_round(place);
                if let Some(mut first) = self.next.peek_mut() {
                    *first = Reverse((after, place));
                }
                break place;
            }
            self.next.pop();
            self.aside.push(place);
        };
        while let Some(out) = self.aside.pop() {
            self.next.push(Reverse((self.next_round(out), out)));
        }
        Some(place)
    }

    fn move_past(&mut self, round: u64, place: u32) {
        self.sequence = round * self.scaled.len() as u64 + u64::from(place) + 1;
    }

    /// The first round, from the sequence on, in which a place is taken: the next one in which its
    /// weight, added up round by round, passes a multiple of [`FULL`].
    fn next_round(&self, place: u32) -> u64 {
        let n = self.scaled.len() as u64;
        let (at, round) = (self.sequence % n, self.sequence / n);
        let from = round + u64::from(at > u64::from(place));
        let phase = self.phase(u64::from(place), from);
        let weight = u64::from(self.scaled[place as usize]);
        from + (FULL - phase).div_ceil(weight) - 1
    }

    fn phase(&self, place: u64, round: u64) -> u64 {
        let weight = u64::from(self.scaled[place as usize]);
        (weight * (round % FULL) + place % FULL * SHIFT) % FULL
    }

    fn selects(&self, place: u64, round: u64) -> bool {
        self.phase(place, round) >= FULL - u64::from(self.scaled[place as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::Stride;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_next_round_is_the_first_that_selects(
            weights in prop::collection::vec(1_u32..70_000, 1..8),
            sequence in 0_u64..1_000_000,
        ) {
            let mut stride = Stride::new(0);
            stride.set_weights(weights.iter().map(|w| f64::from(*w)));
            stride.jump(sequence);
            let n = weights.len() as u64;
            for place in 0..n {
                let from = (sequence + n - 1 - place) / n;
                let first = (from..).find(|round| stride.selects(place, *round));
                prop_assert_eq!(Some(stride.next_round(place as u32)), first);
            }
        }
    }
}

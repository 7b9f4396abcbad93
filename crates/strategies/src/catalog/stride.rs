//! The stride walk: backends in turn, each taken only in the rounds that its scaled weight selects.

use crate::backends::Backends;
use crate::values::BackendId;

/// The largest scaled weight; one with it is taken in every round.
pub(super) const FULL: u64 = 65_535;
/// Shifts the rounds of neighbors against each other.
const SHIFT: u64 = 32_767;

/// State of a walk over the available backends.
#[derive(Debug, Clone, Default)]
pub(super) struct Stride {
    sequence: u64,
    /// By place among the available; the largest is [`FULL`].
    scaled: Vec<u32>,
    all_equal: bool,
}

impl Stride {
    /// Takes new weights, by place among the available. The sequence goes on.
    pub(super) fn set_weights(&mut self, weights: impl Iterator<Item = f64> + Clone) {
        let largest = weights.clone().fold(0.0, f64::max);
        self.scaled.clear();
        self.scaled.extend(weights.map(|w| {
            let scaled = libm::floor(w / largest * FULL as f64 + 0.5);
            (scaled as u32).clamp(1, FULL as u32)
        }));
        self.all_equal = self.scaled.windows(2).all(|pair| pair[0] == pair[1]);
    }

    /// Goes to another place of the sequence.
    pub(super) fn jump(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// The next eligible one. At most n steps while nobody is left out; if the selected ones are all
    /// left out of this pick, the next eligible one in position order.
    pub(super) fn next(&mut self, backends: &Backends) -> Option<BackendId> {
        let n = self.scaled.len() as u64;
        if n == 0 || backends.eligible_len() == 0 {
            return None;
        }
        let ids = backends.available_ids();
        let mut steps_left = 4 * n + 64;
        loop {
            let (place, round) = (self.sequence % n, self.sequence / n);
            self.sequence = self.sequence.wrapping_add(1);
            steps_left = steps_left.saturating_sub(1);
            let id = ids[place as usize];
            let selected = steps_left == 0 || self.selects(place, round);
            if selected && backends.is_eligible(id) {
                return Some(id);
            }
        }
    }

    fn selects(&self, place: u64, round: u64) -> bool {
        let weight = u64::from(self.scaled[place as usize]);
        let phase = (weight * (round % FULL) + place % FULL * SHIFT) % FULL;
        self.all_equal || phase >= FULL - weight
    }
}

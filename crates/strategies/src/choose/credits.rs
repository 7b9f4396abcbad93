//! The smooth step: turns by weight, spread as evenly as whole turns allow.

use super::weight_sum;
use crate::backends::{Backend, Backends};
use crate::values::BackendId;

/// Credits of the smooth step, by id; new backends start at 0.
///
/// Each step adds its weight to everyone in the set and takes the sum from the one with the largest
/// credit (lowest position on equality), who is chosen. Those outside the set keep their credit.
#[derive(Debug, Clone, Default)]
pub struct Credits(Vec<i64>);

impl Credits {
    /// One step over a set by these weights, in any order.
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
            if chosen.is_none_or(|(other, best)| *credit > best || (*credit == best && id < other))
            {
                chosen = Some((id, *credit));
            }
        }
        let (id, _) = chosen?;
        self.0[id.index()] -= sum;
        Some(id)
    }

    /// One step over a set by the configured weights.
    pub fn step_over<'a>(&mut self, set: impl Iterator<Item = &'a Backend>) -> Option<BackendId> {
        self.step(set.map(|b| (b.id, i64::from(b.weight))))
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

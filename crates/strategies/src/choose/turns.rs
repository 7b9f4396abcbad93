//! The smooth step over a large pool: the turns of [`Credits`](super::Credits), in O(distinct weights +
//! log n).
//!
//! All of one weight gain alike at each step, so their order by credit changes only when one of them is
//! chosen. Per weight a tournament keeps that order, and a step compares the first of each weight. What a
//! backend was charged so far is its debt; its credit is steps * weight - debt, exactly.

use super::{Credits, Tournament};
use crate::backends::Backends;
use crate::values::BackendId;
use std::cmp::Reverse;

/// Those of one weight.
#[derive(Debug, Clone)]
struct Class {
    weight: i64,
    /// In position order.
    ids: Vec<BackendId>,
    debts: Tournament<i64>,
}

impl Class {
    /// The largest credit and the lowest position that has it, unless all are left out.
    fn first(&self, steps: i64) -> Option<(i64, BackendId)> {
        let (debt, _) = self.debts.least()?;
        let id = self.ids[self.debts.nth_least(0)];
        Some((steps * self.weight - debt, id))
    }
}

/// Credits of the available backends, kept as debts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    classes: Vec<Class>,
    /// By id: index of the class and place in it.
    spots: Vec<(u32, u32)>,
    steps: i64,
    weight_sum: i64,
    aside: Vec<(BackendId, i64)>,
}

impl Turns {
    /// Begins with these credits.
    pub(crate) fn of(credits: &Credits, backends: &Backends) -> Self {
        let mut ids = backends.available_ids().to_vec();
        let weight = |id: &BackendId| backends.get(*id).map_or(1, |b| i64::from(b.weight));
        ids.sort_by_key(weight);
        let mut turns = Self {
            spots: vec![(0, 0); backends.ids_len()],
            weight_sum: ids.iter().map(weight).sum(),
            ..Self::default()
        };
        for same in ids.chunk_by(|a, b| weight(a) == weight(b)) {
            let mut debts = Tournament::default();
            debts.fill(same.iter().map(|id| -credits.of(*id)));
            for (place, id) in same.iter().enumerate() {
                turns.spots[id.index()] = (turns.classes.len() as u32, place as u32);
            }
            turns.classes.push(Class {
                weight: weight(&same[0]),
                ids: same.to_vec(),
                debts,
            });
        }
        turns
    }

    /// Writes the credits back.
    pub(crate) fn settle(&self, credits: &mut Credits) {
        for class in &self.classes {
            for (place, id) in class.ids.iter().enumerate() {
                credits.set(*id, self.steps * class.weight - class.debts.key(place));
            }
        }
    }

    fn class(&mut self, id: BackendId) -> (&mut Class, usize) {
        let (class, place) = self.spots[id.index()];
        (&mut self.classes[class as usize], place as usize)
    }

    /// One step over the eligible. Those left out of this pick keep their credit.
    pub(crate) fn step(&mut self, backends: &Backends) -> Option<BackendId> {
        if backends.eligible_len() == 0 {
            return None;
        }
        self.steps += 1;
        let mut weight_sum = self.weight_sum;
        for id in backends.left_out() {
            let (class, place) = self.class(id);
            // Charged the step that is not theirs, so that it changes nothing.
            let debt = class.debts.key(place) + class.weight;
            class.debts.set(place, i64::MAX);
            weight_sum -= class.weight;
            self.aside.push((id, debt));
        }
        let firsts = self.classes.iter().filter_map(|c| c.first(self.steps));
        let (_, id) = firsts.min_by_key(|(credit, id)| (Reverse(*credit), *id))?;
        let (class, place) = self.class(id);
        let debt = class.debts.key(place) + weight_sum;
        class.debts.set(place, debt);
        while let Some((id, debt)) = self.aside.pop() {
            let (class, place) = self.class(id);
            class.debts.set(place, debt);
        }
        Some(id)
    }
}

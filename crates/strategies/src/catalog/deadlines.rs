//! Earliest deadline first over backends with weights: the state behind `edf-wrr`.

use crate::backends::Backends;
use crate::values::BackendId;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// One backend's place in line: deadline = base + turn / weight.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Due {
    deadline: f64,
    push_number: u64,
    id: BackendId,
    base: f64,
    turn: u64,
    weight: f64,
}

impl Due {
    fn new(id: BackendId, weight: u32, base: f64, push_number: u64) -> Self {
        let weight = f64::from(weight);
        Self {
            deadline: base + 1.0 / weight,
            push_number,
            id,
            base,
            turn: 1,
            weight,
        }
    }

    fn next_turn(self, push_number: u64) -> Self {
        let turn = self.turn + 1;
        Self {
            deadline: self.base + turn as f64 / self.weight,
            push_number,
            turn,
            ..self
        }
    }

    /// Keeps the waited fraction of the period.
    fn reweighted(self, weight: u32, virtual_time: f64) -> Self {
        let weight = f64::from(weight);
        let deadline = virtual_time + (self.deadline - virtual_time) * self.weight / weight;
        Self {
            deadline,
            base: deadline - 1.0 / weight,
            turn: 1,
            weight,
            ..self
        }
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.deadline
            .total_cmp(&other.deadline)
            .then(self.push_number.cmp(&other.push_number))
    }
}

/// Everyone's place in line.
#[derive(Debug, Clone, Default)]
pub(super) struct Deadlines {
    line: BinaryHeap<Reverse<Due>>,
    virtual_time: f64,
    pushes: u64,
}

impl Deadlines {
    /// The eligible one with the earliest deadline; its next turn is one period later. Those left out
    /// of this pick lose a turn that was due.
    pub(super) fn next(&mut self, backends: &Backends) -> Option<BackendId> {
        if backends.eligible_len() == 0 {
            return None;
        }
        loop {
            let mut first = self.line.peek_mut()?;
            let due = first.0;
            *first = Reverse(due.next_turn(self.pushes));
            drop(first);
            self.pushes += 1;
            if backends.is_eligible(due.id) {
                self.virtual_time = due.deadline;
                return Some(due.id);
            }
        }
    }

    /// The earliest among some, given in position order; only its turn is used up. O(n).
    pub(super) fn next_among(&mut self, tied: &[BackendId]) -> Option<BackendId> {
        let mut all = std::mem::take(&mut self.line).into_vec();
        let among = all
            .iter_mut()
            .filter(|d| tied.binary_search(&d.0.id).is_ok());
        let chosen = among.min_by_key(|d| d.0).map(|first| {
            let due = first.0;
            *first = Reverse(due.next_turn(self.pushes));
            self.virtual_time = self.virtual_time.max(due.deadline);
            self.pushes += 1;
            due.id
        });
        self.line = all.into();
        chosen
    }

    /// Starts everyone somewhere in its first period: `unit` draws the fraction.
    pub(super) fn scatter(&mut self, mut unit: impl FnMut() -> f64) {
        let mut all = std::mem::take(&mut self.line).into_vec();
        all.sort_by_key(|d| d.0.id);
        for Reverse(due) in &mut all {
            due.deadline = due.base + unit() / due.weight;
            due.base = due.deadline - 1.0 / due.weight;
        }
        self.line = all.into();
    }

    /// New and returned backends begin a period now; changed weights keep the waited fraction.
    pub(super) fn on_backends_changed(&mut self, backends: &Backends) {
        let mut all = std::mem::take(&mut self.line).into_vec();
        all.retain(|d| backends.available_place(d.0.id).is_some());
        all.sort_by_key(|d| d.0.id);
        let mut known = all.into_iter().map(|d| d.0).peekable();
        let mut line = Vec::with_capacity(backends.available_ids().len());
        for backend in backends.available() {
            let due = match known.next_if(|d| d.id == backend.id) {
                Some(due) if due.weight == f64::from(backend.weight) => due,
                Some(due) => due.reweighted(backend.weight, self.virtual_time),
                None => {
                    self.pushes += 1;
                    Due::new(
                        backend.id,
                        backend.weight,
                        self.virtual_time,
                        self.pushes - 1,
                    )
                }
            };
            line.push(Reverse(due));
        }
        self.line = line.into();
    }
}

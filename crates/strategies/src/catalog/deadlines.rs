//! Earliest deadline first over backends with weights: turns that come every 1 / weight.

use crate::backends::{Backend, Backends};
use crate::values::BackendId;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// One backend's place in line: deadline = base + turn / weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Due {
    deadline: f64,
    push_number: u64,
    id: BackendId,
    base: f64,
    turn: u64,
    weight: f64,
}

impl Due {
    /// After every other.
    pub(super) const LAST: Self = Self {
        deadline: f64::INFINITY,
        push_number: u64::MAX,
        id: BackendId(u32::MAX),
        base: 0.0,
        turn: 0,
        weight: 1.0,
    };

    fn next_turn(self, push_number: u64) -> Self {
        let turn = self.turn + 1;
        Self {
            deadline: self.base + turn as f64 / self.weight,
            push_number,
            turn,
            ..self
        }
    }

    /// Starts somewhere in the first period: `fraction` of it is over.
    fn scattered(self, fraction: f64) -> Self {
        let deadline = self.base + fraction / self.weight;
        Self {
            deadline,
            base: deadline - 1.0 / self.weight,
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

/// The clock that deadlines are set by.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock {
    virtual_time: f64,
    pushes: u64,
}

impl Clock {
    fn push(&mut self) -> u64 {
        self.pushes += 1;
        self.pushes - 1
    }

    /// A period that begins now.
    fn begin(&mut self, backend: &Backend) -> Due {
        let weight = f64::from(backend.weight);
        Due {
            deadline: self.virtual_time + 1.0 / weight,
            push_number: self.push(),
            id: backend.id,
            base: self.virtual_time,
            turn: 1,
            weight,
        }
    }

    /// The period under way with another weight: keeps the waited fraction.
    fn reweigh(&self, due: Due, weight: u32) -> Due {
        let weight = f64::from(weight);
        let deadline = self.virtual_time + (due.deadline - self.virtual_time) * due.weight / weight;
        Due {
            deadline,
            base: deadline - 1.0 / weight,
            turn: 1,
            weight,
            ..due
        }
    }

    /// Uses a turn up: time goes on to its deadline.
    pub(super) fn use_up(&mut self, due: Due) -> Due {
        self.virtual_time = self.virtual_time.max(due.deadline);
        due.next_turn(self.push())
    }

    /// After a change of the pool, deadlines of the available in position order. New and returned
    /// backends begin a period now; changed weights keep the waited fraction. `known` grows with the id.
    pub(super) fn carry_over(
        &mut self,
        known: impl Iterator<Item = Due>,
        backends: &Backends,
    ) -> Vec<Due> {
        let mut known = known
            .filter(|due| backends.available_place(due.id).is_some())
            .peekable();
        let available = backends.available();
        let due = |backend: &Backend| match known.next_if(|due| due.id == backend.id) {
            Some(due) if due.weight == f64::from(backend.weight) => due,
            Some(due) => self.reweigh(due, backend.weight),
            None => self.begin(backend),
        };
        available.map(due).collect()
    }
}

/// Everyone's place in line, the earliest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    line: BinaryHeap<Reverse<Due>>,
    clock: Clock,
}

impl Line {
    /// The eligible one with the earliest deadline; its next turn is one period later. Those left out
    /// of this pick lose a turn that was due.
    pub(super) fn next(&mut self, backends: &Backends) -> Option<BackendId> {
        if backends.eligible_len() == 0 {
            return None;
        }
        loop {
            let mut first = self.line.peek_mut()?;
            let due = first.0;
            if backends.is_eligible(due.id) {
                *first = Reverse(self.clock.use_up(due));
                return Some(due.id);
            }
            *first = Reverse(due.next_turn(self.clock.push()));
        }
    }

    /// Starts everyone somewhere in its first period: `unit` draws the fraction.
    pub(super) fn scatter(&mut self, mut unit: impl FnMut() -> f64) {
        let mut all = self.take_all();
        for due in &mut all {
            *due = due.scattered(unit());
        }
        self.line = all.into_iter().map(Reverse).collect();
    }

    pub(super) fn on_backends_changed(&mut self, backends: &Backends) {
        let all = self.take_all();
        let line = self.clock.carry_over(all.into_iter(), backends);
        self.line = line.into_iter().map(Reverse).collect();
    }

    /// Empties the line; in order of id.
    fn take_all(&mut self) -> Vec<Due> {
        let all = std::mem::take(&mut self.line).into_vec();
        let mut all: Vec<Due> = all.into_iter().map(|due| due.0).collect();
        all.sort_by_key(|due| due.id);
        all
    }
}

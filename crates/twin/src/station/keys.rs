//! The clock V of attained service and the requests as keys on it.
//!
//! A request that starts at V with work w leaves when V reaches w + V. Canceled ones stay as
//! tombstones, skipped at the top and swept out when they outnumber the living: the order of the
//! living never changes, so this is exact.

use super::{Job, REBASE_ABOVE};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// Tombstones that are never worth a sweep.
const FEW: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: f64,
    order: u64,
    job: Job,
    started: f64,
}

// Smallest (key, order) on top, so equal keys leave in the order of arrival. Keys are never
// negative, so their bits order as they do.
impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let bits = (other.key.to_bits(), other.order);
        bits.cmp(&(self.key.to_bits(), self.order))
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

/// Jobs in service on one clock.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// Attained service since the clock was last set back.
    v: f64,
    heap: BinaryHeap<Entry>,
    /// Canceled entries still in the heap, with V when they were.
    dead: BTreeMap<u64, f64>,
    rebase_above: f64,
    /// Work left of the dead ones that were swept.
    lost: f64,
}

impl Keys {
    pub(super) fn new(mean_work: f64) -> Self {
        Self {
            v: 0.0,
            heap: BinaryHeap::new(),
            dead: BTreeMap::new(),
            rebase_above: REBASE_ABOVE * mean_work,
            lost: 0.0,
        }
    }

    /// Jobs alive.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.heap.len() - self.dead.len()
    }

    /// Lets V grow.
    #[inline]
    pub(super) fn attain(&mut self, dv: f64) {
        self.v += dv;
        if self.v > self.rebase_above {
            self.rebase();
        }
    }

    #[inline]
    pub(super) fn push(&mut self, order: u64, job: Job, work: f64, now: f64) {
        let key = self.v + work;
        self.heap.push(Entry {
            key,
            order,
            job,
            started: now,
        });
    }

    /// How far V is from the first key; `None` if nobody is in service.
    #[inline]
    pub(super) fn to_first(&self) -> Option<f64> {
        self.heap.peek().map(|e| (e.key - self.v).max(0.0))
    }

    /// Takes the first job out and sets V to its key.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Job, f64)> {
        let first = self.heap.pop()?;
        self.v = first.key;
        self.settle();
        Some((first.job, first.started))
    }

    /// Takes the first job out if V has reached its key, within rounding; V stays.
    pub(super) fn pop_reached(&mut self) -> Option<Job> {
        if self.to_first()? > 1e-12 * (1.0 + self.v) {
            return None;
        }
        let first = self.heap.pop()?;
        self.settle();
        Some(first.job)
    }

    /// Marks a job in service as gone; the caller knows that it is there.
    pub(super) fn cancel(&mut self, order: u64) {
        debug_assert!(self.heap.iter().any(|e| e.order == order), "a job held");
        self.dead.insert(order, self.v);
        if self.dead.len() > FEW && 2 * self.dead.len() > self.heap.len() {
            self.sweep();
        }
        self.settle();
    }

    /// Takes everyone out, in order of arrival.
    pub(super) fn fail_all(&mut self, failed: &mut Vec<Job>) {
        self.sweep();
        let v = self.v;
        let mut all: Vec<Entry> = self.heap.drain().collect();
        all.sort_unstable_by_key(|e| e.order);
        for entry in all {
            self.lost += (entry.key - v).max(0.0);
            failed.push(entry.job);
        }
        self.v = 0.0;
    }

    /// Work left of those alive, with V ahead by `dv`.
    pub(super) fn left(&self, dv: f64, visit: &mut dyn FnMut(Job, f64)) {
        for entry in &self.heap {
            if !self.dead.contains_key(&entry.order) {
                visit(entry.job, (entry.key - self.v - dv).max(0.0));
            }
        }
    }

    /// Work left of the canceled when they were.
    pub(super) fn lost(&self) -> f64 {
        let unswept = self.heap.iter();
        let unswept = unswept.filter_map(|e| Some((e.key - self.dead.get(&e.order)?).max(0.0)));
        self.lost + unswept.sum::<f64>()
    }

    /// Skips tombstones at the top; V starts anew when nobody is left.
    #[inline]
    fn settle(&mut self) {
        if !self.dead.is_empty() {
            self.skip_dead();
        }
        if self.heap.is_empty() {
            self.v = 0.0;
        }
    }

    #[cold]
    fn skip_dead(&mut self) {
        while let Some(first) = self.heap.peek() {
            let Some(v) = self.dead.remove(&first.order) else {
                return;
            };
            self.lost += (first.key - v).max(0.0);
            self.heap.pop();
        }
    }

    #[cold]
    fn sweep(&mut self) {
        let (dead, lost) = (&mut self.dead, &mut self.lost);
        self.heap.retain(|entry| match dead.remove(&entry.order) {
            None => true,
            Some(v) => {
                *lost += (entry.key - v).max(0.0);
                false
            }
        });
    }

    #[cold]
    fn rebase(&mut self) {
        self.sweep();
        let base = std::mem::take(&mut self.v);
        let entries = std::mem::take(&mut self.heap).into_vec();
        let moved = entries.into_iter().map(|entry| Entry {
            key: (entry.key - base).max(0.0),
            ..entry
        });
        self.heap = moved.collect();
    }

    /// Lowers the limit at which V is set back, so that tests reach it.
    #[cfg(test)]
    pub(super) fn rebase_above(&mut self, limit: f64) {
        self.rebase_above = limit;
    }
}

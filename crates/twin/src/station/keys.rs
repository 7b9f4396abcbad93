//! The clock V of attained service and the requests as keys on it.
//!
//! A request that starts at V with work w leaves when V reaches w + V. Canceled ones stay as
//! tombstones, skipped at the top and swept out when they outnumber the living: the order of the
//! living never changes, so this is exact.

use super::REBASE_ABOVE;
use super::heap::Heap;
use std::collections::BTreeMap;

/// Tombstones that are never worth a sweep.
const FEW: usize = 16;

/// Jobs in service on one clock, each known by what its station keeps of it.
#[derive(Debug, Clone)]
pub(super) struct Keys<J> {
    /// Attained service since the clock was last set back.
    v: f64,
    heap: Heap<J>,
    rebase_above: f64,
    /// Made at the first cancel, so that those who have none stay small.
    gone: Option<Box<Gone>>,
}

/// Canceled and failed jobs.
#[derive(Debug, Clone, Default)]
struct Gone {
    /// Canceled entries still in the heap, with V when they were.
    dead: BTreeMap<u64, f64>,
    /// Work left of those that are not in the heap any more.
    lost: f64,
}

impl<J: Copy> Keys<J> {
    pub(super) fn new(mean_work: f64) -> Self {
        Self {
            v: 0.0,
            heap: Heap::default(),
            rebase_above: REBASE_ABOVE * mean_work,
            gone: None,
        }
    }

    /// Jobs alive.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.heap.len() - self.gone.as_ref().map_or(0, |g| g.dead.len())
    }

    /// Lets V grow.
    #[inline(always)]
    pub(super) fn attain(&mut self, dv: f64) {
        self.v += dv;
        if self.v > self.rebase_above {
            self.rebase();
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, order: u64, job: J, work: f64) {
        self.heap.push(self.v + work, order, job);
    }

    /// How far V is from the first key; `None` if nobody is in service.
    #[inline(always)]
    pub(super) fn to_first(&self) -> Option<f64> {
        let left = self.heap.first()?.key - self.v;
        Some(if left > 0.0 { left } else { 0.0 })
    }

    /// The first job.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<J> {
        self.heap.first().map(|e| e.job)
    }

    /// Takes the first job out and sets V to its key.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<J> {
        let first = self.heap.pop()?;
        self.v = first.key;
        self.settle();
        Some(first.job)
    }

    /// Takes the first job out if V has reached its key, within rounding; V stays.
    pub(super) fn pop_reached(&mut self) -> Option<J> {
        if self.to_first()? > 1e-12 * (1.0 + self.v) {
            return None;
        }
        let first = self.heap.pop()?;
        self.settle();
        Some(first.job)
    }

    /// Marks a job in service as gone; the caller knows that it is there.
    pub(super) fn cancel(&mut self, order: u64) {
        debug_assert!(
            self.heap.entries().iter().any(|e| e.order == order),
            "a job held"
        );
        let gone = self.gone.get_or_insert_default();
        gone.dead.insert(order, self.v);
        if gone.dead.len() > FEW && 2 * gone.dead.len() > self.heap.len() {
            self.sweep();
        }
        self.settle();
    }

    /// Takes everyone out, in order of arrival.
    pub(super) fn fail_all(&mut self, mut failed: impl FnMut(J)) {
        self.sweep();
        let v = self.v;
        let mut all = std::mem::take(&mut self.heap).into_entries();
        all.sort_unstable_by_key(|e| e.order);
        let gone = self.gone.get_or_insert_default();
        for entry in all {
            gone.lost += (entry.key - v).max(0.0);
            failed(entry.job);
        }
        self.v = 0.0;
    }

    /// Work left of those alive, with V ahead by `dv`.
    pub(super) fn left(&self, dv: f64, mut visit: impl FnMut(J, f64)) {
        for entry in self.heap.entries() {
            let dead = self
                .gone
                .as_ref()
                .is_some_and(|g| g.dead.contains_key(&entry.order));
            if !dead {
                visit(entry.job, (entry.key - self.v - dv).max(0.0));
            }
        }
    }

    /// Work left of the canceled when they were.
    pub(super) fn lost(&self) -> f64 {
        let Some(gone) = &self.gone else { return 0.0 };
        let unswept = self.heap.entries().iter();
        let unswept = unswept.filter_map(|e| Some((e.key - gone.dead.get(&e.order)?).max(0.0)));
        gone.lost + unswept.sum::<f64>()
    }

    /// Skips tombstones at the top; V starts anew when nobody is left.
    #[inline(always)]
    fn settle(&mut self) {
        if self.gone.is_some() {
            self.skip_dead();
        }
        if self.heap.is_empty() {
            self.v = 0.0;
        }
    }

    #[cold]
    fn skip_dead(&mut self) {
        let Some(gone) = &mut self.gone else { return };
        while let Some(first) = self.heap.first() {
            let Some(v) = gone.dead.remove(&first.order) else {
                return;
            };
            gone.lost += (first.key - v).max(0.0);
            self.heap.pop();
        }
    }

    #[cold]
    fn sweep(&mut self) {
        let Some(gone) = &mut self.gone else { return };
        let (dead, lost) = (&mut gone.dead, &mut gone.lost);
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
        self.heap.each_key(|key| (key - base).max(0.0));
    }

    /// Lowers the limit at which V is set back, so that tests reach it.
    #[cfg(test)]
    pub(super) fn rebase_above(&mut self, limit: f64) {
        self.rebase_above = limit;
    }
}

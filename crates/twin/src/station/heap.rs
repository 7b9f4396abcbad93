//! A binary heap of keys, the smallest (key, order) first.
//!
//! Most workers hold a handful of requests, where a plain sift from the root costs less than the
//! standard library's way down to a leaf and up again.

use super::Job;

/// One job on the clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) key: f64,
    pub(super) order: u64,
    pub(super) job: Job,
}

impl Entry {
    /// Equal keys come in the order of arrival.
    #[inline]
    fn before(&self, other: &Self) -> bool {
        self.key < other.key || (self.key == other.key && self.order < other.order)
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Heap(Vec<Entry>);

impl Heap {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&Entry> {
        self.0.first()
    }

    /// In no particular order.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.0
    }

    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.0
    }

    #[inline(always)]
    pub(super) fn push(&mut self, entry: Entry) {
        let mut at = self.0.len();
        self.0.push(entry);
        while at > 0 {
            let parent = (at - 1) / 2;
            if !entry.before(&self.0[parent]) {
                break;
            }
            self.0[at] = self.0[parent];
            at = parent;
        }
        self.0[at] = entry;
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let last = self.0.pop()?;
        let Some(first) = self.0.first().copied() else {
            return Some(last);
        };
        self.sift_down(0, last);
        Some(first)
    }

    /// Puts `entry` at `at` or below.
    #[inline(always)]
    fn sift_down(&mut self, mut at: usize, entry: Entry) {
        let heap = &mut self.0[..];
        loop {
            let mut child = 2 * at + 1;
            if child >= heap.len() {
                break;
            }
            if child + 1 < heap.len() && heap[child + 1].before(&heap[child]) {
                child += 1;
            }
            if !heap[child].before(&entry) {
                break;
            }
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = entry;
    }

    /// Keeps some; O(n).
    pub(super) fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.0.retain(keep);
        for at in (0..self.0.len() / 2).rev() {
            self.sift_down(at, self.0[at]);
        }
    }

    /// Changes every key by a function that keeps their order.
    pub(super) fn each_key(&mut self, change: impl Fn(f64) -> f64) {
        self.0.iter_mut().for_each(|e| e.key = change(e.key));
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Heap};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_come_out_sorted(keys in proptest::collection::vec(0_u8..20, 0..100), odd: bool) {
            let mut heap = Heap::default();
            for (order, key) in keys.iter().enumerate() {
                heap.push(Entry { key: f64::from(*key), order: order as u64, job: 0 });
            }
            let kept = |e: &Entry| !odd || e.order % 2 == 1;
            heap.retain(kept);
            heap.each_key(|k| k + 1.0);
            let mut expected: Vec<Entry> = heap.entries().to_vec();
            expected.sort_by(|a, b| a.key.total_cmp(&b.key).then(a.order.cmp(&b.order)));
            let popped: Vec<Entry> = std::iter::from_fn(|| heap.pop()).collect();
            prop_assert_eq!(popped, expected);
        }
    }
}

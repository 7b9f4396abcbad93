//! The jobs on a clock by (key, order), the smallest first out.
//!
//! A few are kept sorted, the first one last: taking it out costs nothing, and putting one in moves only
//! those that leave before it. Most workers hold a handful of requests, where that is half the work of a
//! heap. Many are a binary heap, smallest first; a list that grows beyond a few is turned round, and is one.

/// Up to so many are kept sorted.
const FEW: usize = 32;

/// One job on the clock, known by what a station keeps of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry<J> {
    pub(super) key: f64,
    pub(super) order: u64,
    pub(super) job: J,
}

impl<J: Copy> Entry<J> {
    #[inline]
    fn before(&self, other: &Self) -> bool {
        self.is_before(other.key, other.order)
    }

    /// Equal keys come in the order of arrival.
    #[inline(always)]
    fn is_before(&self, key: f64, order: u64) -> bool {
        self.key < key || (self.key == key && self.order < order)
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Heap<J>(Vec<Entry<J>>);

impl<J> Default for Heap<J> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<J: Copy> Heap<J> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline(always)]
    pub(super) fn first(&self) -> Option<&Entry<J>> {
        if self.is_sorted() {
            self.0.last()
        } else {
            self.0.first()
        }
    }

    /// In no particular order.
    pub(super) fn entries(&self) -> &[Entry<J>] {
        &self.0
    }

    pub(super) fn into_entries(self) -> Vec<Entry<J>> {
        self.0
    }

    #[inline(always)]
    fn is_sorted(&self) -> bool {
        self.0.len() <= FEW
    }

    // An entry goes in and out field by field: as a whole it would take the way through memory.
    #[inline(always)]
    pub(super) fn push(&mut self, key: f64, order: u64, job: J) {
        if self.0.len() >= FEW {
            return self.push_to_many(key, order, job);
        }
        let mut at = self.0.len();
        self.0.push(Entry { key, order, job });
        let list = &mut self.0[..];
        while at > 0 && list[at - 1].is_before(key, order) {
            list[at] = list[at - 1];
            at -= 1;
        }
        list[at] = Entry { key, order, job };
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Entry<J>> {
        let first = *self.first()?;
        if self.is_sorted() {
            self.0.truncate(self.0.len() - 1);
        } else {
            self.drop_first_of_many();
        }
        Some(first)
    }

    #[inline(never)]
    fn push_to_many(&mut self, key: f64, order: u64, job: J) {
        if self.is_sorted() {
            // Smallest first is a heap.
            self.0.reverse();
        }
        let entry = Entry { key, order, job };
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

    #[inline(never)]
    fn drop_first_of_many(&mut self) {
        if let Some(last) = self.0.pop() {
            self.sift_down(0, last);
        }
        if self.is_sorted() {
            self.sort();
        }
    }

    /// Smallest last.
    fn sort(&mut self) {
        self.0
            .sort_unstable_by(|a, b| b.key.total_cmp(&a.key).then(b.order.cmp(&a.order)));
    }

    /// Puts `entry` at `at` or below.
    fn sift_down(&mut self, mut at: usize, entry: Entry<J>) {
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
    pub(super) fn retain(&mut self, keep: impl FnMut(&Entry<J>) -> bool) {
        let were_sorted = self.is_sorted();
        self.0.retain(keep);
        if were_sorted {
            return;
        }
        if self.is_sorted() {
            return self.sort();
        }
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
    use super::{Entry, FEW, Heap};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_that_of_looking_through(
            steps in proptest::collection::vec(0_u8..10, 0..300),
            rising in 0_u8..8,
        ) {
            let mut heap = Heap::default();
            let mut all: Vec<Entry<u32>> = Vec::new();
            for (order, step) in steps.into_iter().enumerate() {
                // Mostly in or mostly out, so that few become many and few again.
                if step >= rising {
                    let key = f64::from(step.wrapping_mul(37) % 16);
                    let entry = Entry { key, order: order as u64, job: order as u32 };
                    heap.push(entry.key, entry.order, entry.job);
                    all.push(entry);
                } else {
                    let first = all.iter().copied().reduce(|a, b| if b.before(&a) { b } else { a });
                    all.retain(|e| Some(*e) != first);
                    prop_assert_eq!(heap.first().copied(), first);
                    prop_assert_eq!(heap.pop(), first);
                }
                prop_assert_eq!(heap.len(), all.len());
            }
        }

        #[test]
        fn entries_come_out_sorted(keys in proptest::collection::vec(0_u8..20, 0..100), odd: bool) {
            let mut heap = Heap::default();
            for (order, key) in keys.iter().enumerate() {
                heap.push(f64::from(*key), order as u64, 0);
            }
            prop_assert_eq!(heap.is_sorted(), keys.len() <= FEW);
            let kept = |e: &Entry<u32>| !odd || e.order % 2 == 1;
            heap.retain(kept);
            heap.each_key(|k| k + 1.0);
            let mut expected: Vec<Entry<u32>> = heap.entries().to_vec();
            expected.sort_by(|a, b| a.key.total_cmp(&b.key).then(a.order.cmp(&b.order)));
            let popped: Vec<Entry<u32>> = std::iter::from_fn(|| heap.pop()).collect();
            prop_assert_eq!(popped, expected);
        }
    }
}

//! A tournament over the places of a pool: every node of a tree holds the lesser key of its two
//! children and how many places below it have that key.
//!
//! A changed key is carried up as far as it changes anything: O(log n), and mostly less. The least key
//! and the number of places that share it stand at the root; the i-th of those is a walk down.

use super::Key;

#[derive(Debug, Clone, Copy)]
struct Node<K> {
    key: K,
    /// Places below with this key.
    count: u32,
}

/// Keys of the places 0, 1, ... and the least of them.
#[derive(Debug, Clone)]
pub(crate) struct Tournament<K> {
    /// Leaves: a power of two, the ones beyond the pool last in order.
    width: usize,
    /// The root is 1, the children of `i` are `2 i` and `2 i + 1`, the leaves begin at `width`.
    nodes: Vec<Node<K>>,
}

impl<K> Default for Tournament<K> {
    fn default() -> Self {
        Self {
            width: 0,
            nodes: Vec::new(),
        }
    }
}

fn lesser<K: Key>(left: Node<K>, right: Node<K>) -> Node<K> {
    match left.key.cmp(&right.key) {
        std::cmp::Ordering::Less => left,
        std::cmp::Ordering::Greater => right,
        std::cmp::Ordering::Equal => Node {
            count: left.count + right.count,
            ..left
        },
    }
}

impl<K: Key> Tournament<K> {
    /// Takes all keys anew; O(n).
    pub(crate) fn fill(&mut self, keys: impl ExactSizeIterator<Item = K>) {
        self.width = keys.len().next_power_of_two();
        let last = Node {
            key: K::LAST,
            count: 1,
        };
        self.nodes.clear();
        self.nodes.resize(2 * self.width, last);
        for (node, key) in self.nodes[self.width..].iter_mut().zip(keys) {
            node.key = key;
        }
        for i in (1..self.width).rev() {
            self.nodes[i] = lesser(self.nodes[2 * i], self.nodes[2 * i + 1]);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.width = 0;
        self.nodes.clear();
    }

    /// The key of a place.
    pub(crate) fn key(&self, place: usize) -> K {
        self.nodes[self.width + place].key
    }

    /// Changes the key of a place.
    pub(crate) fn set(&mut self, place: usize, key: K) {
        let mut i = self.width + place;
        self.nodes[i].key = key;
        while i > 1 {
            i /= 2;
            let node = lesser(self.nodes[2 * i], self.nodes[2 * i + 1]);
            let known = &mut self.nodes[i];
            if node.key == known.key && node.count == known.count {
                return;
            }
            *known = node;
        }
    }

    /// The least key and how many places have it; `None` if nobody comes before [`Key::LAST`].
    pub(crate) fn least(&self) -> Option<(K, usize)> {
        let root = self.nodes.get(1)?;
        (root.key < K::LAST).then_some((root.key, root.count as usize))
    }

    /// The `i`-th place, from 0, of those that have the least key.
    pub(crate) fn nth_least(&self, i: usize) -> usize {
        let least = self.nodes[1].key;
        let (mut at, mut i) = (1, i as u32);
        while at < self.width {
            at *= 2;
            let left = &self.nodes[at];
            let in_left = if left.key == least { left.count } else { 0 };
            if i >= in_left {
                i -= in_left;
                at += 1;
            }
        }
        at - self.width
    }
}

#[cfg(test)]
mod tests {
    use super::Tournament;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_gives_what_looking_through_gives(
            keys in prop::collection::vec(0_i64..6, 1..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0_i64..7), 0..200),
        ) {
            let mut keys = keys;
            let mut tournament = Tournament::default();
            tournament.fill(keys.iter().copied());
            for (place, key) in changes {
                let place = place.index(keys.len());
                let key = if key == 6 { i64::MAX } else { key };
                keys[place] = key;
                tournament.set(place, key);
                prop_assert_eq!(tournament.key(place), key);
                let least = keys.iter().copied().min().filter(|k| *k < i64::MAX);
                let tied: Vec<usize> = (0..keys.len()).filter(|i| Some(keys[*i]) == least).collect();
                prop_assert_eq!(tournament.least(), least.map(|k| (k, tied.len())));
                for (i, place) in tied.iter().enumerate() {
                    prop_assert_eq!(tournament.nth_least(i), *place);
                }
            }
        }
    }
}

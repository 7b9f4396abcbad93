//! When each worker's next own event is due: a scan of few, an indexed 4-ary heap of many.
//!
//! Keyed by worker with increase and decrease, so no event is ever canceled. Of equal times the
//! lower worker comes first.

use std::hint::select_unpredictable;

/// Up to this many workers a scan of one array beats a heap.
const SCAN_UP_TO: usize = 16;
/// Scanned at a time: the length of a loop that the compiler unrolls.
const GROUP: usize = 4;
const ARITY: usize = 4;

/// The due times.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    /// The earliest time and whose it is.
    first: (f64, u32),
    all: Times,
}

#[derive(Debug, Clone)]
enum Times {
    /// By worker: the bits of the time, which order as times do since these are never negative; and how
    /// many groups of [`GROUP`] there are.
    Few {
        bits: [[u64; GROUP]; SCAN_UP_TO / GROUP],
        groups: usize,
    },
    Many {
        heap: Vec<Key>,
        place: Vec<u32>,
    },
}

impl Calendar {
    pub(super) fn new(workers: usize) -> Self {
        let ids = 0..workers as u32;
        let all = if workers <= SCAN_UP_TO {
            Times::Few {
                bits: [[f64::INFINITY.to_bits(); GROUP]; SCAN_UP_TO / GROUP],
                groups: workers.div_ceil(GROUP),
            }
        } else {
            Times::Many {
                heap: ids.clone().map(|w| Key::new(f64::INFINITY, w)).collect(),
                place: ids.collect(),
            }
        };
        Self {
            first: (f64::INFINITY, 0),
            all,
        }
    }

    /// The earliest time and whose it is.
    #[inline(always)]
    pub(super) fn first(&self) -> (f64, u32) {
        self.first
    }

    #[inline(always)]
    pub(super) fn set(&mut self, worker: u32, time: f64) {
        match &mut self.all {
            Times::Few { bits, groups } => {
                bits.as_flattened_mut()[worker as usize] = time.to_bits();
                self.first = scan(bits, *groups);
            }
            Times::Many { heap, place } => {
                let at = place[worker as usize] as usize;
                let key = Key::new(time, worker);
                if key < heap[at] {
                    sift_up(heap, place, at, key);
                } else {
                    sift_down(heap, place, at, key);
                }
                self.first = (heap[0].time(), heap[0].worker());
            }
        }
    }
}

/// Without branches: which worker is next is anybody's guess.
#[inline(always)]
fn scan(groups: &[[u64; GROUP]], count: usize) -> (f64, u32) {
    let (mut first, mut whose) = (u64::MAX, 0);
    for (group, bits) in groups.iter().take(count).enumerate() {
        for (i, bits) in bits.iter().enumerate() {
            let is_earlier = *bits < first;
            first = select_unpredictable(is_earlier, *bits, first);
            whose = select_unpredictable(is_earlier, (GROUP * group + i) as u32, whose);
        }
    }
    (f64::from_bits(first), whose)
}

/// A time and a worker in one number that orders as they do: times are never negative, so their
/// bits order as they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u128);

impl Key {
    #[inline]
    fn new(time: f64, worker: u32) -> Self {
        Self((u128::from(time.to_bits()) << 32) | u128::from(worker))
    }

    #[inline]
    fn time(self) -> f64 {
        f64::from_bits((self.0 >> 32) as u64)
    }

    #[inline]
    fn worker(self) -> u32 {
        self.0 as u32
    }
}

fn sift_up(heap: &mut [Key], place: &mut [u32], mut at: usize, moved: Key) {
    while at > 0 {
        let parent = (at - 1) / ARITY;
        if moved >= heap[parent] {
            break;
        }
        heap[at] = heap[parent];
        place[heap[at].worker() as usize] = at as u32;
        at = parent;
    }
    heap[at] = moved;
    place[moved.worker() as usize] = at as u32;
}

fn sift_down(heap: &mut [Key], place: &mut [u32], mut at: usize, moved: Key) {
    loop {
        let children = ARITY * at + 1;
        let Some(rest) = heap.get(children..).filter(|r| !r.is_empty()) else {
            break;
        };
        let (least, key) = match rest.first_chunk::<ARITY>() {
            Some([a, b, c, d]) => {
                let (ab, i) = if b < a { (b, 1) } else { (a, 0) };
                let (cd, j) = if d < c { (d, 3) } else { (c, 2) };
                if cd < ab { (j, *cd) } else { (i, *ab) }
            }
            None => {
                let first = rest.iter().enumerate().min_by_key(|(_, key)| **key);
                first.map_or((0, moved), |(i, key)| (i, *key))
            }
        };
        if key >= moved {
            break;
        }
        heap[at] = key;
        place[key.worker() as usize] = at as u32;
        at = children + least;
    }
    heap[at] = moved;
    place[moved.worker() as usize] = at as u32;
}

#[cfg(test)]
mod tests {
    use super::Calendar;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_that_of_a_scan(
            n in 1_usize..100,
            sets in proptest::collection::vec((0_u32..100, 0_u8..20), 1..300),
        ) {
            let mut calendar = Calendar::new(n);
            let mut times = vec![f64::INFINITY; n];
            for (worker, time) in sets {
                let worker = worker % n as u32;
                let time = if time == 0 { f64::INFINITY } else { f64::from(time) };
                calendar.set(worker, time);
                times[worker as usize] = time;
                let least = times.iter().copied().fold(f64::INFINITY, f64::min);
                let (first, whose) = calendar.first();
                prop_assert_eq!(first, least);
                if least.is_finite() {
                    let lowest = times.iter().position(|t| *t == least).expect("there");
                    prop_assert_eq!(whose as usize, lowest);
                }
            }
        }
    }
}

//! The available backends sorted by how many requests each has in flight, apart by weight.
//!
//! Per weight one array, cut into buckets of equal length. A length that changes by one swaps its backend
//! with the last (or first) of its bucket and moves the border: O(1) whatever the pool's size. The least
//! of each weight is its first bucket, so a pick looks at one bucket per distinct weight. The order
//! within a bucket is that of arrival; it carries no meaning beyond which draw falls on whom.

use super::{Credits, Key, Ties};
use crate::backends::{Backend, Backends};
use crate::strategy::Rng;
use crate::values::BackendId;
use schema::rng::below;

/// Distinct weights at most; with more, looking at one bucket of each is no gain.
const MAX_WEIGHTS: usize = 64;
/// No weight: not among the sorted.
const NOWHERE: u32 = u32::MAX;

/// Where a backend stands.
#[derive(Debug, Clone, Copy)]
struct Spot {
    /// Index of its weight, or [`NOWHERE`].
    class: u32,
    /// Index in the order of its weight.
    at: u32,
    length: u32,
}

impl Spot {
    const NOWHERE: Self = Self {
        class: NOWHERE,
        at: 0,
        length: 0,
    };
}

/// Backends of one weight.
#[derive(Debug, Clone)]
struct Class {
    weight: u32,
    order: Vec<BackendId>,
    /// Where the bucket of each length begins; one more at the end. As long as the longest queue so far.
    begins: Vec<u32>,
    /// The first bucket with somebody in it.
    least: usize,
}

/// A bucket as a pick sees it.
#[derive(Debug, Clone, Copy)]
struct Bucket<'a> {
    class: usize,
    length: u32,
    ids: &'a [BackendId],
    /// Those in it that are not left out of this pick.
    eligible: usize,
}

/// The available backends by weight and length.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lengths {
    classes: Vec<Class>,
    /// By id.
    spots: Vec<Spot>,
}

impl Lengths {
    /// Sorts anew after a change of the pool; those who stay keep their order. False, and nothing is
    /// kept, if there are too many distinct weights.
    pub(crate) fn rebuild(
        &mut self,
        backends: &Backends,
        weight: impl Fn(&Backend) -> u32,
    ) -> bool {
        let known = self.classes.iter().flat_map(|c| c.order.iter().copied());
        let is_known = |id: BackendId| {
            let spot = self.spots.get(id.index());
            spot.is_some_and(|s| s.class != NOWHERE)
        };
        let new = backends.available_ids().iter().copied();
        let mut ids: Vec<BackendId> = known
            .filter(|id| backends.available_place(*id).is_some())
            .chain(new.filter(|id| !is_known(*id)))
            .collect();
        let of = |id: &BackendId| backends.get(*id).map(|b| (weight(b), b.in_flight));
        ids.sort_by_key(of);
        self.classes.clear();
        self.spots.clear();
        self.spots.resize(backends.ids_len(), Spot::NOWHERE);
        for same in ids.chunk_by(|a, b| of(a).map(|o| o.0) == of(b).map(|o| o.0)) {
            let (weight, _) = of(&same[0]).unwrap_or((1, 0));
            self.add_class(weight, same, backends);
        }
        let is_kept = self.classes.len() <= MAX_WEIGHTS;
        if !is_kept {
            *self = Self::default();
        }
        is_kept
    }

    /// Takes in those of one weight, sorted by length.
    fn add_class(&mut self, weight: u32, sorted: &[BackendId], backends: &Backends) {
        let mut begins = Vec::new();
        for (at, id) in sorted.iter().enumerate() {
            let length = backends.get(*id).map_or(0, |b| b.in_flight);
            begins.resize(begins.len().max(length as usize + 1), at as u32);
            self.spots[id.index()] = Spot {
                class: self.classes.len() as u32,
                at: at as u32,
                length,
            };
        }
        begins.push(sorted.len() as u32);
        self.classes.push(Class {
            weight,
            order: sorted.to_vec(),
            begins,
            least: self.spots[sorted[0].index()].length as usize,
        });
    }

    /// Takes over a backend's in_flight after a dispatch or a response.
    #[inline]
    pub(crate) fn follow(&mut self, backend: &Backend) {
        let index = backend.id.index();
        while let Some(spot) = self.spots.get(index).filter(|s| s.class != NOWHERE) {
            let (class, at) = (spot.class as usize, spot.at);
            match spot.length.cmp(&backend.in_flight) {
                std::cmp::Ordering::Less => self.raise(class, at, spot.length),
                std::cmp::Ordering::Greater => self.lower(class, at, spot.length),
                std::cmp::Ordering::Equal => return,
            }
        }
    }

    /// To the next bucket: last of its own, then the border moves before it.
    #[inline]
    fn raise(&mut self, class: usize, at: u32, length: u32) {
        let next = length as usize + 1;
        let begins = &mut self.classes[class].begins;
        if next + 1 == begins.len() {
            begins.push(begins[next]);
        }
        begins[next] -= 1;
        let border = begins[next];
        self.swap(class, at, border, length + 1);
        let class = &mut self.classes[class];
        if class.begins[class.least] == class.begins[class.least + 1] {
            class.least += 1;
        }
    }

    /// To the bucket before: first of its own, then the border moves after it.
    #[inline]
    fn lower(&mut self, class: usize, at: u32, length: u32) {
        let begins = &mut self.classes[class].begins;
        let border = begins[length as usize];
        begins[length as usize] += 1;
        self.swap(class, at, border, length - 1);
        let class = &mut self.classes[class];
        class.least = class.least.min(length as usize - 1);
    }

    /// Brings the backend at `at` to `to`, where its length is `length`.
    #[inline]
    fn swap(&mut self, class: usize, at: u32, to: u32, length: u32) {
        let order = &mut self.classes[class].order;
        let (moved, other) = (order[at as usize], order[to as usize]);
        order[at as usize] = other;
        order[to as usize] = moved;
        self.spots[other.index()].at = at;
        let spot = &mut self.spots[moved.index()];
        (spot.at, spot.length) = (to, length);
    }

    /// One of those whose key, made of length and weight, is least; O(distinct weights), for ties by
    /// position or in turn also O(tied).
    pub(crate) fn pick<K: Key>(
        &self,
        backends: &Backends,
        ties: Ties,
        credits: &mut Credits,
        rng: &mut Rng,
        key: impl Fn(u32, u32) -> K,
    ) -> Option<BackendId> {
        let buckets = (0..self.classes.len()).filter_map(|c| self.first_bucket(c, backends));
        let (mut least, mut count) = (K::LAST, 0);
        for bucket in buckets.clone() {
            let key = key(bucket.length, self.classes[bucket.class].weight);
            match key.cmp(&least) {
                std::cmp::Ordering::Less => (least, count) = (key, bucket.eligible),
                std::cmp::Ordering::Equal => count += bucket.eligible,
                std::cmp::Ordering::Greater => {}
            }
        }
        let mut tied = buckets.filter(|b| key(b.length, self.classes[b.class].weight) == least);
        if ties == Ties::Random {
            let mut i = if count > 1 {
                below(rng, count as u64) as usize
            } else {
                0
            };
            let bucket = tied.find(|bucket| {
                let is_here = i < bucket.eligible;
                i -= if is_here { 0 } else { bucket.eligible };
                is_here
            })?;
            return Some(self.nth_eligible(bucket, i, backends));
        }
        let ids = tied
            .flat_map(|b| b.ids)
            .filter(|id| backends.is_eligible(**id));
        match ties {
            Ties::Lowest => ids.min().copied(),
            _ => credits.step_over(ids.filter_map(|id| backends.get(*id))),
        }
    }

    /// The first bucket of a weight with somebody eligible in it.
    #[inline]
    fn first_bucket(&self, index: usize, backends: &Backends) -> Option<Bucket<'_>> {
        let class = &self.classes[index];
        let mut length = class.least;
        loop {
            let begin = *class.begins.get(length)?;
            let end = *class.begins.get(length + 1)?;
            let ids = &class.order[begin as usize..end as usize];
            let bucket = Bucket {
                class: index,
                length: length as u32,
                ids,
                eligible: ids.len() - self.left_out(index, length as u32, backends).count(),
            };
            if bucket.eligible > 0 {
                return Some(bucket);
            }
            // Whoever stands next in the order is of the next length that anybody has.
            let next = class.order.get(end as usize)?;
            length = self.spots[next.index()].length as usize;
        }
    }

    /// Places in the order of those in a bucket that are left out of this pick.
    fn left_out(
        &self,
        class: usize,
        length: u32,
        backends: &Backends,
    ) -> impl Iterator<Item = usize> {
        let spots = backends.left_out().map(|id| self.spots[id.index()]);
        let here = spots.filter(move |s| s.class as usize == class && s.length == length);
        here.map(|s| s.at as usize)
    }

    /// The `i`-th of a bucket that is not left out.
    fn nth_eligible(&self, bucket: Bucket<'_>, i: usize, backends: &Backends) -> BackendId {
        let class = &self.classes[bucket.class];
        let begin = class.begins[bucket.length as usize] as usize;
        let mut at = begin + i;
        // One place further for each left-out one up to here, until no more of them come in.
        loop {
            let outs = self.left_out(bucket.class, bucket.length, backends);
            let further = begin + i + outs.filter(|out| *out <= at).count();
            if further == at {
                return class.order[at];
            }
            at = further;
        }
    }
}

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
use std::cmp::Ordering;

/// Distinct weights at most; with more, looking at one bucket of each is no gain.
pub(crate) const MAX_WEIGHTS: usize = 64;
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
    /// The first bucket with somebody in it; it begins at 0.
    least: usize,
}

/// A bucket as a pick sees it.
#[derive(Debug, Clone, Copy)]
struct Bucket<'a> {
    class: usize,
    weight: u32,
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
        let Some(spot) = self.spots.get(index).filter(|s| s.class != NOWHERE) else {
            return;
        };
        let Spot {
            class,
            mut at,
            mut length,
        } = *spot;
        let class = &mut self.classes[class as usize];
        while length < backend.in_flight {
            at = class.raise(at, length, &mut self.spots);
            length += 1;
        }
        while length > backend.in_flight {
            at = class.lower(at, length, &mut self.spots);
            length -= 1;
        }
        let spot = &mut self.spots[index];
        (spot.at, spot.length) = (at, length);
    }

    /// One of those whose key, made of length and weight, is least; O(distinct weights), for ties by
    /// position or in turn also O(tied).
    #[inline]
    pub(crate) fn pick<K: Key>(
        &self,
        backends: &Backends,
        ties: Ties,
        credits: &mut Credits,
        rng: &mut Rng,
        key: impl Fn(u32, u32) -> K,
    ) -> Option<BackendId> {
        if backends.nobody_left_out() {
            let firsts = (0..self.classes.len()).map(|c| self.first_bucket(c));
            self.one_of(firsts, backends, ties, credits, rng, key)
        } else {
            let classes = 0..self.classes.len();
            let firsts = classes.filter_map(|c| self.first_eligible_bucket(c, backends));
            self.one_of(firsts, backends, ties, credits, rng, key)
        }
    }

    fn one_of<'a, K: Key>(
        &self,
        firsts: impl Iterator<Item = Bucket<'a>> + Clone,
        backends: &Backends,
        ties: Ties,
        credits: &mut Credits,
        rng: &mut Rng,
        key: impl Fn(u32, u32) -> K,
    ) -> Option<BackendId> {
        let key = |bucket: &Bucket<'_>| key(bucket.length, bucket.weight);
        let (mut least, mut first, mut count) = (K::LAST, None, 0);
        for bucket in firsts.clone() {
            let key = key(&bucket);
            match key.cmp(&least) {
                Ordering::Less => (least, first, count) = (key, Some(bucket), bucket.eligible),
                Ordering::Equal => count += bucket.eligible,
                Ordering::Greater => {}
            }
        }
        let first = first?;
        let mut tied = firsts.filter(|bucket| key(bucket) == least);
        if ties != Ties::Random {
            let ids = tied.flat_map(|b| b.ids);
            let ids = ids.copied().filter(|id| backends.is_eligible(*id));
            return match ties {
                Ties::Lowest => ids.min(),
                _ => credits.step_over(ids.filter_map(|id| backends.get(id))),
            };
        }
        let mut i = match count {
            1 => 0,
            _ => below(rng, count as u64) as usize,
        };
        if i < first.eligible {
            return Some(self.nth_eligible(first, i, backends));
        }
        let bucket = tied.find(|bucket| {
            let is_here = i < bucket.eligible;
            i -= if is_here { 0 } else { bucket.eligible };
            is_here
        })?;
        Some(self.nth_eligible(bucket, i, backends))
    }

    /// The first bucket of a weight.
    #[inline]
    fn first_bucket(&self, index: usize) -> Bucket<'_> {
        let class = &self.classes[index];
        let ids = &class.order[..class.begins[class.least + 1] as usize];
        Bucket {
            class: index,
            weight: class.weight,
            length: class.least as u32,
            ids,
            eligible: ids.len(),
        }
    }

    /// The first bucket of a weight with somebody in it who is not left out of this pick.
    fn first_eligible_bucket(&self, index: usize, backends: &Backends) -> Option<Bucket<'_>> {
        let class = &self.classes[index];
        let mut bucket = self.first_bucket(index);
        let mut end = bucket.ids.len();
        loop {
            bucket.eligible -= self.left_out(bucket, backends).count();
            if bucket.eligible > 0 {
                return Some(bucket);
            }
            // Whoever stands next in the order is of the next length that anybody has.
            let next = class.order.get(end)?;
            bucket.length = self.spots[next.index()].length;
            let begin = end;
            end = class.begins[bucket.length as usize + 1] as usize;
            bucket.ids = &class.order[begin..end];
            bucket.eligible = bucket.ids.len();
        }
    }

    /// Where in a bucket those stand that are left out of this pick.
    fn left_out(&self, bucket: Bucket<'_>, backends: &Backends) -> impl Iterator<Item = usize> {
        let begin = self.classes[bucket.class].begins[bucket.length as usize];
        let spots = backends.left_out().map(|id| self.spots[id.index()]);
        let here =
            spots.filter(move |s| s.class as usize == bucket.class && s.length == bucket.length);
        here.map(move |s| (s.at - begin) as usize)
    }

    /// The `i`-th of a bucket that is not left out.
    #[inline]
    fn nth_eligible(&self, bucket: Bucket<'_>, i: usize, backends: &Backends) -> BackendId {
        if bucket.eligible == bucket.ids.len() {
            return bucket.ids[i];
        }
        let mut at = i;
        // One place further for each left-out one up to here, until no more of them come in.
        loop {
            let outs = self.left_out(bucket, backends);
            let further = i + outs.filter(|out| *out <= at).count();
            if further == at {
                return bucket.ids[at];
            }
            at = further;
        }
    }
}

impl Class {
    /// To the next bucket: last of its own, then the border moves before it. Gives back its new place.
    #[inline]
    fn raise(&mut self, at: u32, length: u32, spots: &mut [Spot]) -> u32 {
        let next = length as usize + 1;
        if next + 1 == self.begins.len() {
            self.begins.push(self.begins[next]);
        }
        let border = &mut self.begins[next];
        *border -= 1;
        let to = *border;
        // The first bucket begins at 0.
        if to == 0 {
            self.least = next;
        }
        self.swap(at, to, spots);
        to
    }

    /// To the bucket before: first of its own, then the border moves after it.
    #[inline]
    fn lower(&mut self, at: u32, length: u32, spots: &mut [Spot]) -> u32 {
        let border = &mut self.begins[length as usize];
        let to = *border;
        *border += 1;
        self.least = self.least.min(length as usize - 1);
        self.swap(at, to, spots);
        to
    }

    /// Brings the backend at `at` to `to`; the other one is told where it went.
    #[inline]
    fn swap(&mut self, at: u32, to: u32, spots: &mut [Spot]) {
        let other = self.order[to as usize];
        spots[other.index()].at = at;
        self.order.swap(at as usize, to as usize);
    }
}

//! The least length of a large pool with smooth ties: the picks of [`Lengths`](super::Lengths) with the
//! turns of [`Turns`](super::Turns), in O(distinct weights + log n).
//!
//! Backends of one weight and one length are tied at the same picks, so all of such a bucket gain alike at
//! each step over it, and their order by credit changes only when one of them is chosen. A bucket counts
//! the steps made over it and keeps its backends by debt; a credit is steps * weight - debt, exactly. Who
//! goes to another bucket takes the credit along.

use super::{Credits, Key, MAX_WEIGHTS};
use crate::backends::{Backend, Backends};
use crate::values::BackendId;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

/// No weight: not among the available.
const NOWHERE: u32 = u32::MAX;

/// Where a backend stands.
#[derive(Debug, Clone, Copy)]
struct Spot {
    /// Index of its weight, or [`NOWHERE`].
    class: u32,
    length: u32,
    debt: i64,
}

/// Those of one weight and one length, the largest credit first, of equals the lowest position.
#[derive(Debug, Clone, Default)]
struct Bucket {
    steps: i64,
    debts: BTreeSet<(i64, BackendId)>,
}

/// Those of one weight.
#[derive(Debug, Clone)]
struct Class {
    weight: i64,
    /// By length; as many as the longest queue so far.
    buckets: Vec<Bucket>,
    /// The first bucket with somebody in it, or their number.
    least: usize,
}

impl Class {
    fn add(&mut self, id: BackendId, length: u32, credit: i64) -> i64 {
        let at = length as usize;
        if at >= self.buckets.len() {
            if self.least == self.buckets.len() {
                self.least = at;
            }
            self.buckets.resize_with(at + 1, Bucket::default);
        }
        self.least = self.least.min(at);
        let bucket = &mut self.buckets[at];
        let debt = bucket.steps * self.weight - credit;
        bucket.debts.insert((debt, id));
        debt
    }

    /// Takes a backend out; gives back its credit.
    fn take(&mut self, id: BackendId, length: u32, debt: i64) -> i64 {
        let bucket = &mut self.buckets[length as usize];
        bucket.debts.remove(&(debt, id));
        let credit = bucket.steps * self.weight - debt;
        while self
            .buckets
            .get(self.least)
            .is_some_and(|b| b.debts.is_empty())
        {
            self.least += 1;
        }
        credit
    }

    /// The least length that anybody has.
    fn length(&self) -> Option<u32> {
        (self.least < self.buckets.len()).then_some(self.least as u32)
    }

    /// One step of everybody of the least length: how much they gain together, and the first by credit.
    fn step(&mut self) -> Option<(i64, i64, BackendId)> {
        let bucket = self.buckets.get_mut(self.least)?;
        bucket.steps += 1;
        let (debt, id) = bucket.debts.first()?;
        let gain = self.weight * bucket.debts.len() as i64;
        Some((gain, bucket.steps * self.weight - debt, *id))
    }
}

/// The available backends by weight, length and credit.
#[derive(Debug, Clone, Default)]
pub(crate) struct LengthTurns {
    classes: Vec<Class>,
    /// By id.
    spots: Vec<Spot>,
    /// Credits of those left out of the present pick.
    aside: Vec<(BackendId, i64)>,
}

impl LengthTurns {
    /// Begins with these credits; `None` if there are too many distinct weights.
    pub(crate) fn of(credits: &Credits, backends: &Backends) -> Option<Self> {
        let weight = |b: &Backend| i64::from(b.weight);
        let weights: BTreeSet<i64> = backends.available().map(weight).collect();
        if weights.len() > MAX_WEIGHTS {
            return None;
        }
        let class = |weight: &i64| Class {
            weight: *weight,
            buckets: Vec::new(),
            least: 0,
        };
        let nowhere = Spot {
            class: NOWHERE,
            length: 0,
            debt: 0,
        };
        let mut turns = Self {
            classes: weights.iter().map(class).collect(),
            spots: vec![nowhere; backends.ids_len()],
            aside: Vec::new(),
        };
        for backend in backends.available() {
            let class = turns
                .classes
                .partition_point(|c| c.weight < weight(backend));
            let spot = &mut turns.spots[backend.id.index()];
            spot.class = class as u32;
            spot.length = backend.in_flight;
            turns.put(backend.id, credits.of(backend.id));
        }
        Some(turns)
    }

    /// Writes the credits back.
    pub(crate) fn settle(&self, credits: &mut Credits) {
        for class in &self.classes {
            for bucket in &class.buckets {
                for (debt, id) in &bucket.debts {
                    credits.set(*id, bucket.steps * class.weight - debt);
                }
            }
        }
    }

    /// Takes over a backend's in_flight after a dispatch or a response.
    pub(crate) fn follow(&mut self, backend: &Backend) {
        let spot = self.spots.get(backend.id.index()).copied();
        let moved = |s: &Spot| s.class != NOWHERE && s.length != backend.in_flight;
        if spot.as_ref().is_some_and(moved) {
            let credit = self.take(backend.id);
            self.spots[backend.id.index()].length = backend.in_flight;
            self.put(backend.id, credit);
        }
    }

    /// The one in turn of those whose key, made of length and weight, is least.
    pub(crate) fn pick<K: Key>(
        &mut self,
        backends: &Backends,
        key: impl Fn(u32, u32) -> K,
    ) -> Option<BackendId> {
        for id in backends.left_out() {
            let credit = self.take(id);
            self.aside.push((id, credit));
        }
        let chosen = self.step(key);
        while let Some((id, credit)) = self.aside.pop() {
            self.put(id, credit);
        }
        chosen
    }

    fn step<K: Key>(&mut self, key: impl Fn(u32, u32) -> K) -> Option<BackendId> {
        let key = |class: &Class| Some(key(class.length()?, class.weight as u32));
        let least = self.classes.iter().filter_map(key).min()?;
        let mut sum = 0;
        let mut first: Option<(Reverse<i64>, BackendId)> = None;
        for class in &mut self.classes {
            let is_tied = key(class).is_some_and(|k| k.cmp(&least) == Ordering::Equal);
            if let Some((gain, credit, id)) = is_tied.then(|| class.step()).flatten() {
                sum += gain;
                let one = (Reverse(credit), id);
                first = Some(first.map_or(one, |first| first.min(one)));
            }
        }
        let (Reverse(credit), id) = first?;
        self.take(id);
        self.put(id, credit - sum);
        Some(id)
    }

    fn take(&mut self, id: BackendId) -> i64 {
        let spot = self.spots[id.index()];
        self.classes[spot.class as usize].take(id, spot.length, spot.debt)
    }

    fn put(&mut self, id: BackendId, credit: i64) {
        let spot = &mut self.spots[id.index()];
        spot.debt = self.classes[spot.class as usize].add(id, spot.length, credit);
    }
}

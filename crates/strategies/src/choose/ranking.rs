//! The available backends ranked by a key each, kept up as keys change.
//!
//! O(log n) per change and per pick, against O(n) of looking through. Only pools above a size are
//! ranked; the strategy looks through smaller ones itself.

use super::{Credits, Key, Ties, Tournament};
use crate::backends::{Backend, Backends};
use crate::strategy::Rng;
use crate::time::Time;
use crate::values::BackendId;
use schema::rng::below;

/// A key, and the first moment at which it is another one by the mere passing of time.
pub(crate) type Keyed<K> = (K, Time);

/// Keys of the available backends, by place.
#[derive(Debug, Clone)]
pub(crate) struct Ranking<K> {
    few: usize,
    is_kept: bool,
    keys: Tournament<K>,
    /// When each key changes by itself.
    ends: Tournament<Time>,
    /// Keys of those left out of the present pick.
    aside: Vec<(usize, K)>,
}

impl<K: Key> Ranking<K> {
    /// A ranking of pools above `few`.
    pub(crate) fn above(few: usize) -> Self {
        Self {
            few,
            is_kept: false,
            keys: Tournament::default(),
            ends: Tournament::default(),
            aside: Vec::new(),
        }
    }

    /// Whether the pool is large enough to be ranked.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Takes all keys anew, after a change of the pool; O(n).
    pub(crate) fn rebuild(&mut self, backends: &Backends, keyed: impl Fn(&Backend) -> Keyed<K>) {
        self.is_kept = backends.available_ids().len() > self.few;
        if self.is_kept {
            self.keys.fill(backends.available().map(|b| keyed(b).0));
            self.ends.fill(backends.available().map(|b| keyed(b).1));
        } else {
            self.keys.clear();
            self.ends.clear();
        }
    }

    /// Takes over a backend's key if it is ranked. Gives back the key before and now.
    pub(crate) fn rekey(
        &mut self,
        backends: &Backends,
        id: BackendId,
        keyed: impl Fn(&Backend) -> Keyed<K>,
    ) -> Option<(K, K)> {
        if !self.is_kept {
            return None;
        }
        let place = backends.available_place(id)?;
        let (key, end) = keyed(backends.get(id)?);
        let before = self.keys.key(place);
        self.keys.set(place, key);
        self.ends.set(place, end);
        Some((before, key))
    }

    /// A backend whose key has changed by the passing of time up to `now`.
    pub(crate) fn due(&self, now: Time, backends: &Backends) -> Option<BackendId> {
        self.ends.least().filter(|(end, _)| *end <= now)?;
        Some(backends.available_ids()[self.ends.nth_least(0)])
    }

    /// Leaves those aside that are left out of the present pick; [`Self::end_pick`] puts them back.
    pub(crate) fn begin_pick(&mut self, backends: &Backends) {
        for id in backends.left_out() {
            self.leave_aside(id, backends);
        }
    }

    /// Leaves one more aside.
    pub(crate) fn leave_aside(&mut self, id: BackendId, backends: &Backends) {
        let place = backends.available_place(id).expect("it is available");
        self.aside.push((place, self.keys.key(place)));
        self.keys.set(place, K::LAST);
    }

    /// Puts back those that were left aside.
    pub(crate) fn end_pick(&mut self) {
        while let Some((place, key)) = self.aside.pop() {
            self.keys.set(place, key);
        }
    }

    /// The least key among those not left aside, and how many have it.
    pub(crate) fn least(&self) -> Option<(K, usize)> {
        self.keys.least()
    }

    /// The first of the least, with its key.
    pub(crate) fn first(&self, backends: &Backends) -> Option<(BackendId, K)> {
        let (key, _) = self.least()?;
        Some((backends.available_ids()[self.keys.nth_least(0)], key))
    }

    /// One of the least.
    pub(crate) fn one_of_least(
        &self,
        backends: &Backends,
        ties: Ties,
        credits: &mut Credits,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let (_, count) = self.least()?;
        let nth = |i| backends.available_ids()[self.keys.nth_least(i)];
        match ties {
            Ties::Lowest => Some(nth(0)),
            Ties::Random if count > 1 => Some(nth(below(rng, count as u64) as usize)),
            Ties::Random => Some(nth(0)),
            Ties::Smooth | Ties::ByWeight => {
                let tied = (0..count).filter_map(|i| backends.get(nth(i)));
                ties.among(count, tied, credits, rng)
            }
        }
    }

    /// The same for a whole pick: leaves aside, chooses, puts back.
    pub(crate) fn pick(
        &mut self,
        backends: &Backends,
        ties: Ties,
        credits: &mut Credits,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        self.begin_pick(backends);
        let id = self.one_of_least(backends, ties, credits, rng);
        self.end_pick();
        id
    }
}

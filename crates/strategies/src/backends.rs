//! The members of a pool as strategies see them: read-only, in position order.

use crate::time::Time;
use crate::values::BackendId;
use schema::report::{Report, Source};
use std::sync::Arc;

/// Members at most.
pub const MAX_MEMBERS: usize = 1 << 17;
/// Ids given in one run at most, removed members included.
pub const MAX_IDS: u32 = 1 << 20;
/// Largest weight.
pub const MAX_WEIGHT: u32 = 65_535;

const NOWHERE: u32 = u32::MAX;

/// What an operator says of a backend.
#[derive(Debug, Clone, PartialEq)]
pub struct NewBackend {
    /// Name, unique among the members; what hash strategies hash.
    pub name: String,
    /// Base URL; empty in a simulation.
    pub url: String,
    /// Relative capacity, 1..=65535.
    pub weight: u32,
    /// CPU limit, above 0; may be fractional.
    pub cores: f64,
    /// Memory limit, MiB; 0 if unknown.
    pub memory_mib: f64,
}

/// One backend: what it is, and what this balancer counted on it. Laid out so that a dispatch or a
/// response touches one cache line of it.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Backend {
    /// Its number.
    pub id: BackendId,
    /// Relative capacity.
    pub weight: u32,
    /// Requests dispatched to it and not yet answered, and those held: what strategies read.
    pub in_flight: u32,
    /// Requests that failed so fast that they go on counting as in flight for a while.
    pub held: u32,
    /// CPU limit.
    pub cores: f64,
    /// Memory limit, MiB.
    pub memory_mib: f64,
    /// Dispatches so far.
    pub sent: u64,
    /// False once it was removed.
    pub member: bool,
    /// Gets nothing new on an operator's wish.
    pub draining: bool,
    /// Barred from picks until this time because it failed; in the past while it is on trial.
    pub ejected_until: Option<Time>,
    /// When it joined or came back, if that was after the start; slow start counts from here.
    pub warm_from: Option<Time>,
    /// Configured name.
    pub name: Arc<str>,
    /// Base URL.
    pub url: Arc<str>,
    pub(crate) reports: [Option<Box<Report>>; 4],
}

impl Backend {
    pub(crate) fn new(id: BackendId, new: &NewBackend) -> Self {
        Self {
            id,
            weight: new.weight,
            in_flight: 0,
            held: 0,
            cores: new.cores,
            memory_mib: new.memory_mib,
            sent: 0,
            member: true,
            draining: false,
            ejected_until: None,
            warm_from: None,
            name: new.name.as_str().into(),
            url: new.url.as_str().into(),
            reports: [None, None, None, None],
        }
    }

    /// Holds the place of an id that no member has.
    fn absent(id: BackendId) -> Self {
        let nobody = NewBackend {
            name: String::new(),
            url: String::new(),
            weight: 1,
            cores: 1.0,
            memory_mib: 0.0,
        };
        Self {
            member: false,
            ..Self::new(id, &nobody)
        }
    }

    /// A member that is neither draining nor ejected.
    pub fn is_up(&self) -> bool {
        self.member && !self.draining && self.ejected_until.is_none()
    }

    /// Requests dispatched to it and not yet answered, for gauges: `in_flight` without those held.
    pub fn unanswered(&self) -> u32 {
        self.in_flight - self.held
    }

    /// The newest report of one source.
    pub fn report(&self, source: Source) -> Option<&Report> {
        self.reports[source as usize].as_deref()
    }

    /// The newest answer of its statistics page, whether on the timer or asked for.
    pub fn newest_stats(&self) -> Option<&Report> {
        let (poll, probe) = (self.report(Source::Poll), self.report(Source::Probe));
        match (poll, probe) {
            (Some(a), Some(b)) if b.sampled_at_ns > a.sampled_at_ns => probe,
            (None, _) => probe,
            _ => poll,
        }
    }
}

/// Every backend of the run, and who of them may be picked now.
///
/// *Available* = a member that is neither draining nor ejected; in a panic, when too few of those are
/// left, ejected ones too. *Eligible* = available and not left out of the present pick (already tried,
/// or still warming). Both are listed in position order, which is the order of ids.
#[derive(Debug, Clone, Default)]
pub struct Backends {
    all: Vec<Backend>,
    /// Dispatches so far, to anybody.
    dispatches: u64,
    members: Vec<BackendId>,
    available: Vec<BackendId>,
    /// By id: index into `available`, or [`NOWHERE`].
    place: Vec<u32>,
    /// By id: the number of the last pick it was left out of.
    left_out_at: Vec<u64>,
    pick_number: u64,
    /// Indices into `available`, ascending.
    left_out: Vec<u32>,
    /// Ejections are ignored while a smaller share of the members is up.
    panic_percent: Option<u32>,
    in_panic: bool,
}

impl Backends {
    pub(crate) fn new(panic_percent: Option<u32>) -> Self {
        Self {
            panic_percent,
            ..Self::default()
        }
    }

    /// Number of the newest dispatch; to a strategy that is told of a dispatch, the number of that one.
    pub fn newest_dispatch(&self) -> u64 {
        self.dispatches.saturating_sub(1)
    }

    /// Whether so few are up that ejections are ignored.
    pub fn in_panic(&self) -> bool {
        self.in_panic
    }

    /// The backend with this number, member or not.
    pub fn get(&self, id: BackendId) -> Option<&Backend> {
        self.all.get(id.index())
    }

    /// Members in position order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &Backend> + Clone {
        self.members.iter().map(|id| &self.all[id.index()])
    }

    /// Available backends in position order.
    pub fn available(&self) -> impl ExactSizeIterator<Item = &Backend> + Clone {
        self.available.iter().map(|id| &self.all[id.index()])
    }

    /// Ids of the available backends, ascending.
    pub fn available_ids(&self) -> &[BackendId] {
        &self.available
    }

    /// Where an available backend stands in [`Self::available_ids`].
    #[inline]
    pub fn available_place(&self, id: BackendId) -> Option<usize> {
        match self.place.get(id.index()) {
            None | Some(&NOWHERE) => None,
            Some(place) => Some(*place as usize),
        }
    }

    /// The eligible as a slice, where they are all there ever were: the usual case.
    #[inline]
    pub(crate) fn eligible_slice(&self) -> Option<&[Backend]> {
        let all_in = self.available.len() == self.all.len() && self.left_out.is_empty();
        all_in.then_some(&self.all)
    }

    /// Those that may be picked now, in position order.
    pub fn eligible(&self) -> impl Iterator<Item = &Backend> + Clone {
        let all_in = self.left_out.is_empty();
        self.available
            .iter()
            .filter(move |id| all_in || self.left_out_at[id.index()] != self.pick_number)
            .map(|id| &self.all[id.index()])
    }

    /// How many may be picked now.
    pub fn eligible_len(&self) -> usize {
        self.available.len() - self.left_out.len()
    }

    /// Whether every available backend may be picked now.
    pub fn nobody_left_out(&self) -> bool {
        self.left_out.is_empty()
    }

    /// Those left out of the present pick, in position order.
    pub fn left_out(&self) -> impl ExactSizeIterator<Item = BackendId> + Clone {
        self.left_out
            .iter()
            .map(|place| self.available[*place as usize])
    }

    /// The `i`-th eligible backend in position order; O(log of those left out).
    ///
    /// # Panics
    /// If `i` is not below [`Self::eligible_len`].
    #[inline]
    pub fn eligible_at(&self, i: usize) -> &Backend {
        let place = match self.left_out.is_empty() {
            true => i,
            false => i + self.left_out_before(i),
        };
        &self.all[self.available[place].index()]
    }

    /// How many left-out ones stand before the `i`-th eligible one.
    fn left_out_before(&self, i: usize) -> usize {
        let (mut low, mut high) = (0, self.left_out.len());
        while low < high {
            let middle = (low + high) / 2;
            // So many eligible ones stand before the left-out one in the middle.
            if self.left_out[middle] as usize - middle <= i {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Whether this backend may be picked now.
    #[inline]
    pub fn is_eligible(&self, id: BackendId) -> bool {
        self.available_place(id).is_some()
            && (self.left_out.is_empty() || self.left_out_at[id.index()] != self.pick_number)
    }

    /// One more than the largest id given so far: the length of a vector indexed by id.
    pub fn ids_len(&self) -> usize {
        self.all.len()
    }
}

/// Changes, made by the dispatcher only.
impl Backends {
    /// Counts a dispatch: its number, and the backend's in_flight just after.
    #[inline]
    pub(crate) fn raise(&mut self, id: BackendId) -> (u64, u32) {
        let backend = &mut self.all[id.index()];
        backend.sent += 1;
        backend.in_flight += 1;
        self.dispatches += 1;
        (self.dispatches - 1, backend.in_flight)
    }

    pub(crate) fn get_mut(&mut self, id: BackendId) -> Option<&mut Backend> {
        self.all.get_mut(id.index())
    }

    /// Adds a member last; ids between the last one and this one stay unused. The lists are right
    /// again after [`Self::relist`].
    pub(crate) fn push(&mut self, backend: Backend) {
        let index = backend.id.index();
        assert!(index >= self.all.len(), "ids grow with the position order");
        while self.all.len() < index {
            let id = BackendId(self.all.len() as u32);
            self.all.push(Backend::absent(id));
        }
        self.all.push(backend);
    }

    /// Rebuilds the lists after a membership, drain or ejection change; O(n).
    pub(crate) fn relist(&mut self) {
        self.end_pick();
        self.members.clear();
        self.available.clear();
        self.place.clear();
        self.place.resize(self.all.len(), NOWHERE);
        self.left_out_at.resize(self.all.len(), 0);
        let members = self.all.iter().filter(|b| b.member);
        self.members.extend(members.map(|b| b.id));
        self.in_panic = self.is_panic();
        for backend in self.all.iter().filter(|b| b.member && !b.draining) {
            if self.in_panic || backend.is_up() {
                self.place[backend.id.index()] = self.available.len() as u32;
                self.available.push(backend.id);
            }
        }
    }

    /// Whether fewer than the share, or than one, are up, and ignoring ejections would help.
    fn is_panic(&self) -> bool {
        let Some(percent) = self.panic_percent else {
            return false;
        };
        let least = (self.members.len() * percent as usize).div_ceil(100).max(1);
        let up = self.members().filter(|b| b.is_up()).count();
        up < least && self.members().any(|b| !b.draining && !b.is_up())
    }

    /// Leaves a backend out of the present pick; no effect if it is not eligible anyway.
    pub(crate) fn leave_out(&mut self, id: BackendId) {
        if !self.is_eligible(id) {
            return;
        }
        if self.left_out.is_empty() {
            self.pick_number += 1;
        }
        self.left_out_at[id.index()] = self.pick_number;
        let place = self.place[id.index()];
        let at = self.left_out.partition_point(|other| *other < place);
        self.left_out.insert(at, place);
    }

    #[inline]
    pub(crate) fn end_pick(&mut self) {
        self.left_out.clear();
    }
}

//! One worker of a run: its station, its record, what is wrong with it, and the books kept on it.

use super::ledger::Ledger;
use super::setup::Setup;
use crate::station::Station;
use crate::sum::Sum;

/// Books for the conservation laws. Work and time gather in plain sums that are emptied in time, as a
/// [`crate::sum::Tray`] does; what is rarely looked at lies apart, so that thousands of workers stay in the
/// cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    pub(super) arrived: u64,
    pub(super) completed: u64,
    pub(super) routed: f64,
    pub(super) done: f64,
    /// Time spent here by those that are gone.
    pub(super) time: f64,
    pub(super) closed: Box<Closed>,
}

/// What was emptied so far, and what was canceled or failed while held.
#[derive(Debug, Clone, Default)]
pub(super) struct Closed {
    routed: Sum,
    done: Sum,
    time: Sum,
    pub(super) lost: u64,
    pub(super) lost_work: Sum,
}

impl Flow {
    /// Empties the plain sums; at least every [`crate::sum::TRAY`] events.
    pub(super) fn settle(&mut self) {
        *self.closed = self.settled();
        (self.routed, self.done, self.time) = (0.0, 0.0, 0.0);
    }

    /// The books up to now.
    fn settled(&self) -> Closed {
        let mut closed = (*self.closed).clone();
        closed.routed.add(self.routed);
        closed.done.add(self.done);
        closed.time.add(self.time);
        closed
    }

    /// Work routed here, work done here, and time spent here by those that are gone, up to now.
    pub(super) fn sums(&self) -> (f64, f64, f64) {
        let all = self.settled();
        (all.routed.value(), all.done.value(), all.time.value())
    }
}

/// A request fault that is on: its place in the table of faults, and its number in the timeline.
pub(super) type Trap = (u8, u32);

/// What is wrong with a worker.
#[derive(Debug, Clone)]
pub(super) struct Health {
    /// Faults that make it refuse connections.
    pub(super) refusing: u32,
    /// The process is gone.
    pub(super) dead: bool,
    pub(super) frozen: bool,
    pub(super) stats_hang: bool,
    pub(super) slow: f64,
    /// Drift of its speed, 1 = none.
    pub(super) drift: f64,
    /// Share of the cores that others burn.
    pub(super) stolen: f64,
    pub(super) lie_active: Option<u32>,
    pub(super) lie_latency: Option<f64>,
    /// Request faults, first in table order first.
    pub(super) traps: Vec<Trap>,
}

impl Health {
    fn good() -> Self {
        Self {
            refusing: 0,
            dead: false,
            frozen: false,
            stats_hang: false,
            slow: 1.0,
            drift: 1.0,
            stolen: 0.0,
            lie_active: None,
            lie_latency: None,
            traps: Vec::new(),
        }
    }

    pub(super) fn refuses(&self) -> bool {
        self.dead || self.refusing > 0
    }

    pub(super) fn tells(&self) -> bool {
        !(self.refuses() || self.frozen || self.stats_hang)
    }

    /// Speed relative to the healthy one.
    fn speed(&self) -> f64 {
        if self.frozen || self.dead {
            0.0
        } else {
            self.drift * (1.0 - self.stolen) / self.slow
        }
    }
}

/// What is rarely looked at, kept apart so that thousands of workers stay in the cache.
#[derive(Debug)]
pub(super) struct Ward {
    pub(super) cores: f64,
    speed: f64,
    pub(super) ledger: Option<Ledger>,
    pub(super) health: Health,
    /// Slots of requests that were read and will not be answered.
    pub(super) hung: Vec<u32>,
    /// Requests held outside the station, those included.
    pub(super) aside: u32,
    speed_now: f64,
    capacity_before: f64,
    capacity_from: f64,
}

/// See the module. Aligned, so that an event touches as few cache lines as there are.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Worker<S> {
    pub(super) station: S,
    pub(super) flow: Flow,
    pub(super) ward: Box<Ward>,
}

impl<S: Station> Worker<S> {
    pub(super) fn new(setup: &Setup, w: usize, responses: Option<usize>) -> Self {
        let shape = setup.shape(w);
        Self {
            station: S::new(&shape),
            flow: Flow::default(),
            ward: Box::new(Ward {
                cores: shape.cores,
                speed: shape.speed,
                ledger: responses.map(|keep| Ledger::new(shape.cores, keep)),
                health: Health::good(),
                hung: Vec::new(),
                aside: 0,
                speed_now: shape.speed,
                capacity_before: 0.0,
                capacity_from: 0.0,
            }),
        }
    }

    /// Its record, if it keeps one.
    pub(super) fn ledger(&mut self) -> Option<&mut Ledger> {
        self.ward.ledger.as_mut()
    }

    /// Brings the record up to `now`, before anything changes.
    pub(super) fn pass(&mut self, now: f64) {
        if let Some(ledger) = &mut self.ward.ledger {
            ledger.pass(now, &self.station.used(now));
        }
    }

    /// Applies what is wrong with it to its speed.
    pub(super) fn set_speed(&mut self, now: f64) {
        self.pass(now);
        let ward = &mut self.ward;
        let speed = ward.speed * ward.health.speed();
        ward.capacity_before = ward.capacity(now);
        ward.capacity_from = now;
        ward.speed_now = speed;
        self.station.set_speed(now, speed);
    }

    /// Requests it holds.
    pub(super) fn held(&self) -> u32 {
        self.station.present() + self.ward.aside
    }
}

impl Ward {
    /// Work it could have done by `now`, core-seconds.
    pub(super) fn capacity(&self, now: f64) -> f64 {
        self.capacity_before + self.cores * self.speed_now * (now - self.capacity_from)
    }

    /// Its present speed, 1 = nominal.
    pub(super) fn speed_now(&self) -> f64 {
        self.speed_now
    }
}

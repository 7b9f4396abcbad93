//! The least (in_flight + offset) per weight: what the in-flight strategies share.

use crate::backends::{Backend, Backends};
use crate::choose::{Credits, LengthTurns, Lengths, Ranking, Ties, one_of_least_eligible};
use crate::measure::Load;
use crate::registry::Context;
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};

/// What a whole request counts while the offset is a fraction: offsets are exact to four decimals.
const FRACTION_UNIT: u64 = 10_000;
/// With more than this many left out of a pick, as in the slow start of a large pool, looking through costs
/// less than taking each of them out of its turn and putting it back.
const MANY_LEFT_OUT: usize = 64;

/// The measure: in_flight plus a share of the request itself, per weight.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// What a request in flight counts.
    unit: u64,
    /// What the request itself counts.
    offset: u64,
    /// Whether it is taken per weight.
    per_weight: bool,
}

impl Measured {
    #[inline]
    fn weight(self, backend: &Backend) -> u32 {
        if self.per_weight { backend.weight } else { 1 }
    }

    #[inline]
    fn load(self, in_flight: u32, weight: u32) -> Load {
        Load::new(u64::from(in_flight) * self.unit + self.offset, weight)
    }

    #[inline]
    fn of(self, backend: &Backend) -> Load {
        self.load(backend.in_flight, self.weight(backend))
    }
}

/// How the least is found.
#[derive(Debug, Clone)]
enum Order {
    /// By looking through.
    None,
    /// Few distinct weights.
    Lengths(Lengths),
    /// The same with smooth ties; the credits are kept in there meanwhile.
    Turns(LengthTurns),
    /// By looking through, until nobody is left out any more.
    Paused,
    /// Many distinct weights.
    Ranking(Ranking<Load>),
}

/// Picks the eligible backend with the least (in_flight + offset) / weight.
#[derive(Debug, Clone)]
pub(super) struct LeastInFlight {
    measured: Measured,
    ties: Ties,
    credits: Credits,
    few: usize,
    order: Order,
}

impl LeastInFlight {
    /// Requests in flight only.
    pub(super) fn unweighted(ties: Ties, context: &Context) -> Self {
        let measured = Measured {
            unit: 1,
            offset: 0,
            per_weight: false,
        };
        Self::new(measured, ties, context)
    }

    /// Requests in flight and `offset` of the request itself, per weight.
    pub(super) fn weighted(offset: f64, ties: Ties, context: &Context) -> Self {
        let is_whole = offset == 0.0 || offset == 1.0;
        let unit = if is_whole { 1 } else { FRACTION_UNIT };
        let measured = Measured {
            unit,
            offset: libm::round(offset * unit as f64) as u64,
            per_weight: true,
        };
        Self::new(measured, ties, context)
    }

    fn new(measured: Measured, ties: Ties, context: &Context) -> Self {
        Self {
            measured,
            ties,
            credits: Credits::default(),
            few: context.few,
            order: Order::None,
        }
    }

    #[inline]
    fn follow(&mut self, id: BackendId, backends: &Backends) {
        if !matches!(self.order, Order::None) {
            self.reorder_one(id, backends);
        }
    }

    fn reorder_one(&mut self, id: BackendId, backends: &Backends) {
        match &mut self.order {
            Order::None | Order::Paused => {}
            Order::Lengths(lengths) => {
                if let Some(backend) = backends.get(id) {
                    lengths.follow(backend);
                }
            }
            Order::Turns(turns) => {
                if let Some(backend) = backends.get(id) {
                    turns.follow(backend);
                }
            }
            Order::Ranking(ranking) => {
                ranking.rekey(backends, id, |b| (self.measured.of(b), Time::MAX));
            }
        }
    }

    #[inline(never)]
    fn pick_in_order(&mut self, backends: &Backends, rng: &mut Rng) -> Option<BackendId> {
        let (measured, ties, credits) = (&self.measured, self.ties, &mut self.credits);
        match &mut self.order {
            Order::None | Order::Paused => None,
            Order::Lengths(lengths) => {
                let load = |length, weight| measured.load(length, weight);
                lengths.pick(backends, ties, credits, rng, load)
            }
            Order::Turns(turns) => turns.pick(backends, |length, weight| {
                let weight = if measured.per_weight { weight } else { 1 };
                measured.load(length, weight)
            }),
            Order::Ranking(ranking) => ranking.pick(backends, ties, credits, rng),
        }
    }

    /// Puts an order away that most picks would take apart, and takes it up again after that.
    fn pause_or_resume(&mut self, backends: &Backends) {
        match &self.order {
            Order::Turns(turns) if backends.left_out().len() > MANY_LEFT_OUT => {
                turns.settle(&mut self.credits);
                self.order = Order::Paused;
            }
            Order::Paused if backends.nobody_left_out() => self.reorder(backends),
            _ => {}
        }
    }

    fn reorder(&mut self, backends: &Backends) {
        let measured = self.measured;
        if backends.available_ids().len() <= self.few {
            self.order = Order::None;
            return;
        }
        if self.ties == Ties::Smooth
            && let Some(turns) = LengthTurns::of(&self.credits, backends)
        {
            self.order = Order::Turns(turns);
            return;
        }
        let mut lengths = match std::mem::replace(&mut self.order, Order::None) {
            Order::Lengths(known) => known,
            _ => Lengths::default(),
        };
        self.order = if lengths.rebuild(backends, |b| measured.weight(b)) {
            Order::Lengths(lengths)
        } else {
            let mut ranking = Ranking::above(self.few);
            ranking.rebuild(backends, |b| (measured.of(b), Time::MAX));
            Order::Ranking(ranking)
        };
    }
}

impl Strategy for LeastInFlight {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if !matches!(self.order, Order::None) {
            self.pause_or_resume(backends);
            if !matches!(self.order, Order::Paused) {
                return self.pick_in_order(backends, rng);
            }
        }
        let (measured, credits) = (self.measured, &mut self.credits);
        one_of_least_eligible(backends, self.ties, credits, rng, |b| measured.of(b))
    }

    fn on_dispatch(
        &mut self,
        _now: Time,
        id: BackendId,
        _request: &Request<'_>,
        backends: &Backends,
    ) {
        self.follow(id, backends);
    }

    fn on_response(&mut self, _now: Time, id: BackendId, _outcome: &Outcome, backends: &Backends) {
        self.follow(id, backends);
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        if let Order::Turns(turns) = &self.order {
            turns.settle(&mut self.credits);
        }
        self.credits.on_backends_changed(backends);
        self.reorder(backends);
    }
}

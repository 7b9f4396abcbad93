//! Where the next request comes from: an open process, a trace, or callers who wait for answers.

use super::agenda::{Agenda, Event, Rank};
use super::draws::Draws;
use super::setup::{Setup, Source};
use crate::tally::Actions;
use rand_chacha::ChaCha8Rng;
use schema::laws::sizes::SizeLaw;
use schema::laws::times::Times;
use schema::rng::{Purpose, below, exponential, stream};
use schema::schedule::{Due, mean_gap_ns};
use std::sync::Arc;

/// Callers of a closed loop for each of its slots: one whose call is in flight, twenty that wait.
const CALLERS_PER_SLOT: u32 = 21;

/// A caller between two calls of its action.
#[derive(Debug, Clone, Copy, Default)]
struct Caller {
    calls_made: u32,
    failed: bool,
    counts: bool,
}

#[derive(Debug)]
enum Kind {
    Open {
        gaps: Box<Draws>,
        mean_gap: f64,
    },
    Process(Box<Times<ChaCha8Rng>>),
    Trace {
        due: Arc<[Due]>,
        stretch: f64,
        at: usize,
        offset: f64,
        round: f64,
    },
    Users {
        users: u32,
        think: f64,
        rng: ChaCha8Rng,
    },
    Slots {
        slots: u32,
        calls: u32,
        rng: ChaCha8Rng,
        callers: Vec<Caller>,
        waiting: Vec<u32>,
        actions: Actions,
    },
}

/// The arrivals of a run.
#[derive(Debug)]
pub(super) struct Arrivals {
    kind: Kind,
    next: f64,
    /// Arrivals still to come.
    to_come: u64,
    /// Actions that begin with a request before this one are not counted.
    warm_from: u64,
}

impl Arrivals {
    pub(super) fn new(setup: &Setup) -> Self {
        let rng = stream(setup.seed, Purpose::Arrivals, 0, 0);
        let kind = match &setup.source {
            Source::Open { gaps, rate_rps } => Kind::Open {
                gaps: Box::new(Draws::new(*gaps, rng)),
                mean_gap: 1.0 / rate_rps,
            },
            Source::Process(process) => Kind::Process(Box::new(process.times(rng))),
            Source::Trace { due, stretch, .. } => {
                let last = due.last().map_or(0, |d| d.intended_ns) as f64;
                Kind::Trace {
                    due: Arc::clone(due),
                    stretch: *stretch,
                    at: 0,
                    offset: 0.0,
                    round: (last + mean_gap_ns(due).unwrap_or(1e9)) * 1e-9 * stretch,
                }
            }
            Source::Users { users, think } => Kind::Users {
                users: *users,
                think: *think,
                rng,
            },
            Source::Slots { slots, calls } => Kind::Slots {
                slots: *slots,
                calls: *calls,
                rng: stream(setup.seed, Purpose::Callers, 0, 0),
                callers: vec![Caller::default(); (slots * CALLERS_PER_SLOT) as usize],
                waiting: (0..slots * CALLERS_PER_SLOT).collect(),
                actions: Actions::default(),
            },
        };
        let mut arrivals = Self {
            kind,
            next: f64::INFINITY,
            to_come: setup.requests,
            warm_from: setup.warmup,
        };
        arrivals.next = match &mut arrivals.kind {
            // A constant process begins at time 0, as schedules do; a random one with a gap.
            Kind::Open { gaps, .. } if gaps.law() == SizeLaw::Constant => 0.0,
            Kind::Open { gaps, mean_gap } => gaps.next() * *mean_gap,
            Kind::Process(times) => times.next_ns() * 1e-9,
            Kind::Trace { due, stretch, .. } => due
                .first()
                .map_or(f64::INFINITY, |d| d.intended_ns as f64 * 1e-9 * *stretch),
            Kind::Users { .. } | Kind::Slots { .. } => f64::INFINITY,
        };
        if setup.requests == 0 {
            arrivals.next = f64::INFINITY;
        }
        arrivals
    }

    /// When the next open arrival is due, s.
    #[inline]
    pub(super) fn next(&self) -> f64 {
        self.next
    }

    /// Takes the arrival that is due.
    #[inline(always)]
    pub(super) fn take(&mut self) {
        self.to_come -= 1;
        match &mut self.kind {
            Kind::Open { gaps, mean_gap } => self.next += gaps.next() * *mean_gap,
            Kind::Process(times) => self.next = times.next_ns() * 1e-9,
            _ => self.take_listed(),
        }
        if self.to_come == 0 {
            self.next = f64::INFINITY;
        }
    }

    fn take_listed(&mut self) {
        let Kind::Trace {
            due,
            stretch,
            at,
            offset,
            round,
        } = &mut self.kind
        else {
            return;
        };
        *at += 1;
        if *at == due.len() {
            *at = 0;
            *offset += *round;
        }
        self.next = *offset + due[*at].intended_ns as f64 * 1e-9 * *stretch;
    }

    /// Plans the first calls of a closed loop.
    pub(super) fn begin(&mut self, agenda: &mut Agenda) {
        match &mut self.kind {
            Kind::Users { users, think, rng } => {
                for user in 0..*users {
                    let at = exponential(rng) * *think;
                    agenda.plan(at, Rank::Arrival, 0, Event::Call { caller: user });
                }
            }
            Kind::Slots { slots, .. } => {
                for _ in 0..*slots {
                    self.call_next(0.0, agenda);
                }
            }
            Kind::Open { .. } | Kind::Process(_) | Kind::Trace { .. } => {}
        }
    }

    /// Whether a caller may call: enough requests are left.
    pub(super) fn may_call(&self) -> bool {
        self.to_come > 0
    }

    /// Notes the call that a caller makes as request `seq`.
    pub(super) fn called(&mut self, caller: u32, seq: u64) {
        let warm = seq >= self.warm_from;
        if let Kind::Slots { callers, .. } = &mut self.kind {
            let caller = &mut callers[caller as usize];
            if caller.calls_made == 0 {
                caller.counts = warm;
                caller.failed = false;
            }
        }
    }

    /// A caller's call ended; plans what follows.
    #[inline]
    pub(super) fn ended(&mut self, caller: u32, good: bool, now: f64, agenda: &mut Agenda) {
        if matches!(self.kind, Kind::Users { .. } | Kind::Slots { .. }) {
            self.call_again(caller, good, now, agenda);
        }
    }

    fn call_again(&mut self, caller: u32, good: bool, now: f64, agenda: &mut Agenda) {
        match &mut self.kind {
            Kind::Open { .. } | Kind::Process(_) | Kind::Trace { .. } => {}
            Kind::Users { think, rng, .. } => {
                let at = now + exponential(rng) * *think;
                agenda.plan(at, Rank::Arrival, 0, Event::Call { caller });
            }
            Kind::Slots {
                calls,
                callers,
                waiting,
                actions,
                ..
            } => {
                let state = &mut callers[caller as usize];
                state.calls_made += 1;
                state.failed |= !good;
                if state.calls_made == *calls {
                    if state.counts {
                        actions.complete += 1;
                        actions.good += u64::from(!state.failed);
                    }
                    *state = Caller::default();
                }
                waiting.push(caller);
                self.call_next(now, agenda);
            }
        }
    }

    /// How the actions of a closed loop ended.
    pub(super) fn actions(&self) -> Option<Actions> {
        match &self.kind {
            Kind::Slots { actions, .. } => Some(*actions),
            _ => None,
        }
    }

    fn call_next(&mut self, now: f64, agenda: &mut Agenda) {
        if let Kind::Slots { rng, waiting, .. } = &mut self.kind {
            let drawn = below(rng, waiting.len() as u64) as usize;
            let caller = waiting.swap_remove(drawn);
            agenda.plan(now, Rank::Arrival, 0, Event::Call { caller });
        }
    }
}

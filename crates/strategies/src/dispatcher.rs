//! The only door: owns the strategy, the members and every count, and keeps the rules of order.
//!
//! One lock around it for the length of one call gives all events one total order, which can be
//! logged and replayed. Time never decreases: an earlier `now` counts as the latest one seen. An
//! outcome for a dispatch that is not open is an error and changes nothing.

mod ejection;
mod open;
mod pool;
mod reports;

pub use pool::PoolError;
pub use reports::PollMark;

use crate::backends::{Backend, Backends, NewBackend};
use crate::ejection::{Attempt, Ejections};
use crate::fail_hold::FailHold;
use crate::registry::{Context, Entry, Spec};
use crate::strategy::Strategy;
use crate::time::Time;
use crate::values::{Answer, BackendId, Outcome, Request};
use ejection::Told;
use open::{Open, OpenDispatches};
use rand_chacha::ChaCha8Rng;
use schema::protection::{Mark, Rules};
use schema::rng::{Purpose, stream, unit};

/// A warming backend's smallest chance to take part in a pick.
const SLOW_START_FLOOR: f64 = 0.1;

/// Probes asked for that wait to be taken at most; the oldest give way.
pub const MAX_PROBES: usize = 1024;

/// What a dispatcher is told once.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Root seed of its streams.
    pub seed: u64,
    /// What strategies are built with.
    pub context: Context,
    /// Slow-start window, ns; `None` = off.
    pub slow_start_ns: Option<u64>,
    /// Rules of ejection, fail-open and the hold of fast failures.
    pub rules: Rules,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            context: Context::default(),
            slow_start_ns: None,
            rules: Rules::plain(),
        }
    }
}

/// A pick that was dispatched: to be answered exactly once by [`Dispatcher::respond`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "every dispatch needs exactly one response"]
pub struct Dispatch {
    /// Its running number.
    pub id: u64,
    /// The chosen backend.
    pub backend: BackendId,
    /// When it was dispatched, in the dispatcher's order.
    pub at: Time,
    /// The backend's in_flight just before, this request not counted.
    pub in_flight_before: u32,
    /// Set when the rules of ejection, not the strategy, let it go there.
    pub mark: Option<Mark>,
}

/// An outcome named a dispatch that is not open: never made, or already answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("dispatch {0} is not open: it was never made or is already answered")]
pub struct UnknownDispatch(pub u64);

/// Decides where every request goes, and counts what became of it.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    spec: Spec,
    strategy: Box<dyn Strategy>,
    backends: Backends,
    options: Options,
    strategy_rng: ChaCha8Rng,
    slow_start_rng: ChaCha8Rng,
    now: Time,
    open: OpenDispatches,
    ejections: Ejections,
    told: Told,
    fail_hold: Option<FailHold>,
    /// Backends that may still be in their slow-start window.
    warming: Vec<BackendId>,
    probes: Vec<BackendId>,
}

impl Dispatcher {
    /// A dispatcher for these members, in position order, with ids 0, 1, ...
    ///
    /// # Errors
    /// A member with a bad weight, cores or name, a name given twice, too many members, a pool that
    /// the strategy refuses.
    pub fn new(spec: &Spec, members: &[NewBackend], options: Options) -> Result<Self, PoolError> {
        let numbered = members.iter().cloned().enumerate();
        let numbered: Vec<_> = numbered
            .map(|(i, m)| (BackendId(i as u32), m, pool::Drained::No))
            .collect();
        Self::with_ids(spec, &numbered, options)
    }

    /// The same strategy options and members as now, everything learned and counted forgotten.
    /// `spec` and `seed` replace the present ones where given. Ejections end, drains stay.
    ///
    /// # Errors
    /// [`PoolError::InFlight`] while dispatches are open; a pool that the strategy refuses.
    pub fn fresh(&self, spec: Option<&Spec>, seed: Option<u64>) -> Result<Self, PoolError> {
        if self.open.len() > 0 {
            return Err(PoolError::InFlight(self.open.len()));
        }
        let members: Vec<_> = self.backends.members().map(pool::member_of).collect();
        let options = Options {
            seed: seed.unwrap_or(self.options.seed),
            ..self.options.clone()
        };
        Self::with_ids(spec.unwrap_or(&self.spec), &members, options)
    }

    /// Chooses a backend for a request and dispatches it there; `None` if nothing is eligible.
    #[inline(always)]
    pub fn pick(&mut self, now: Time, request: &Request<'_>) -> Option<Dispatch> {
        let now = self.advance(now);
        let entry = self.spec.entry();
        let blanked;
        let request = if request.cost_mi.is_some() && !entry.needs_cost {
            blanked = Request {
                cost_mi: None,
                ..*request
            };
            &blanked
        } else {
            request
        };
        self.dispatch(now, request, entry)
    }

    #[inline(always)]
    fn dispatch(&mut self, now: Time, request: &Request<'_>, entry: &Entry) -> Option<Dispatch> {
        let trial = self.trial_for(now, request);
        let (id, mark) = match trial {
            Some(id) => (id, Some(Mark::Trial)),
            None => (self.choose(now, request)?, self.mark_of_picks()),
        };
        let (dispatch, in_flight_before) = self.raise(id, request, now);
        if trial.is_some() {
            self.ejections.trial_began(id, dispatch);
        }
        self.strategy.on_dispatch(now, id, request, &self.backends);
        if entry.needs_probes {
            let rng = &mut self.strategy_rng;
            self.strategy
                .probe_targets(now, &self.backends, rng, &mut self.probes);
            let excess = self.probes.len().saturating_sub(MAX_PROBES);
            self.probes.drain(..excess);
        }
        Some(Dispatch {
            id: dispatch,
            backend: id,
            at: now,
            in_flight_before,
            mark,
        })
    }

    /// Takes the outcome of a dispatch. Its backend may be gone meanwhile.
    ///
    /// # Errors
    /// The dispatch is not open; nothing was changed.
    #[inline(always)]
    pub fn respond(
        &mut self,
        now: Time,
        dispatch: u64,
        answer: &Answer,
    ) -> Result<Outcome, UnknownDispatch> {
        let open = self
            .open
            .remove(dispatch)
            .ok_or(UnknownDispatch(dispatch))?;
        let now = self.advance(now);
        let latency_ns = answer.latency_ns.unwrap_or_else(|| now.since_ns(open.at));
        let outcome = Outcome {
            dispatch,
            class: open.class,
            dispatched_at: open.at,
            in_flight_at_dispatch: open.in_flight,
            latency_ns,
            ttfb_ns: answer.ttfb_ns.unwrap_or(latency_ns),
            status: answer.status,
            http_status: answer.http_status,
            retry_after_ns: answer.retry_after_ns,
            service_time_ns: answer.service_time_ns,
        };
        self.end(open.backend, &outcome);
        if self.ejections.has_rules() {
            let attempt = Attempt {
                dispatch,
                backend: open.backend,
                spell: open.spell,
            };
            self.judge(attempt, &outcome);
        }
        Ok(outcome)
    }

    /// Lowers the count and tells the strategy, now or when a fast failure's hold is over.
    #[inline]
    fn end(&mut self, id: BackendId, outcome: &Outcome) {
        let now = self.now;
        let Some(hold) = &mut self.fail_hold else {
            return self.end_for_strategy(id, outcome);
        };
        if let Some(heard) = hold.take(now, id, outcome) {
            self.end_for_strategy(id, &heard);
        } else if let Some(backend) = self.backends.get_mut(id) {
            backend.held += 1;
        }
    }

    #[inline]
    fn end_for_strategy(&mut self, id: BackendId, heard: &Outcome) {
        if let Some(backend) = self.backends.get_mut(id) {
            debug_assert!(backend.in_flight > 0, "in_flight counts open dispatches");
            backend.in_flight -= 1;
        }
        let now = self.now;
        self.strategy.on_response(now, id, heard, &self.backends);
    }

    /// Hands over the backends to be probed since the last call; the last [`MAX_PROBES`] of them.
    pub fn take_probes(&mut self, out: &mut Vec<BackendId>) {
        out.append(&mut self.probes);
    }

    /// Changes the strategy live. The new one starts without anything learned; members, counts and
    /// open dispatches stay.
    ///
    /// # Errors
    /// The new strategy refuses the pool; nothing was changed.
    pub fn set_strategy(&mut self, now: Time, spec: &Spec) -> Result<(), PoolError> {
        spec.check(&self.backends, &self.options.context)
            .map_err(PoolError::Refused)?;
        let now = self.advance(now);
        self.spec = spec.clone();
        self.strategy = spec.build(&self.options.context);
        self.probes.clear();
        self.strategy.on_backends_changed(now, &self.backends);
        Ok(())
    }

    /// The strategy and its parameters.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What makes the strategy serve the present members badly, if anything does; for the driver to
    /// show after each change of either.
    pub fn caution(&self) -> Option<String> {
        (self.spec.entry().caution)(&self.spec, &self.backends)
    }

    /// What the dispatcher was told at the start.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Every backend, with its counts.
    pub fn backends(&self) -> &Backends {
        &self.backends
    }

    /// Dispatches that are not answered yet.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// Mean time of the pool's last good attempts, ns; known while fast failures are held.
    pub fn usual_latency_ns(&self) -> Option<u64> {
        self.fail_hold.as_ref().map(FailHold::mean_ns)
    }

    /// The latest time seen.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Whether the strategy drew anything so far.
    #[cfg(test)]
    pub(crate) fn strategy_drew(&self) -> bool {
        self.strategy_rng.get_word_pos() > 0
    }

    /// The strategy's choice alone, without a dispatch: for benchmarks of the pick.
    #[doc(hidden)]
    pub fn pick_only(&mut self, now: Time, request: &Request<'_>) -> Option<BackendId> {
        let now = self.advance(now);
        self.choose(now, request)
    }

    #[inline(always)]
    fn choose(&mut self, now: Time, request: &Request<'_>) -> Option<BackendId> {
        self.leave_out_tried_and_warming(now, request);
        let rng = &mut self.strategy_rng;
        let picked = self.strategy.pick(now, request, &self.backends, rng);
        assert!(
            picked.map_or(self.backends.eligible_len() == 0, |id| self
                .backends
                .is_eligible(id)),
            "{}: a pick is eligible, and there is one whenever anything is; got {picked:?}",
            self.spec
        );
        self.backends.end_pick();
        picked
    }

    #[inline]
    fn leave_out_tried_and_warming(&mut self, now: Time, request: &Request<'_>) {
        for id in request.tried {
            self.backends.leave_out(*id);
        }
        if !self.warming.is_empty() {
            self.leave_out_warming(now);
        }
    }

    fn leave_out_warming(&mut self, now: Time) {
        let Some(window_ns) = self.options.slow_start_ns else {
            return;
        };
        if self.spec.entry().needs_key {
            return;
        }
        let backends = &mut self.backends;
        let rng = &mut self.slow_start_rng;
        self.warming.retain(|id| {
            let warm_from = backends
                .get(*id)
                .filter(|b| b.member)
                .and_then(|b| b.warm_from);
            let Some(age_ns) = warm_from
                .map(|t| now.since_ns(t))
                .filter(|a| *a < window_ns)
            else {
                return false;
            };
            let chance = (age_ns as f64 / window_ns as f64).max(SLOW_START_FLOOR);
            if unit(rng) >= chance && (backends.eligible_len() > 1 || !backends.is_eligible(*id)) {
                backends.leave_out(*id);
            }
            true
        });
    }

    #[inline(always)]
    fn raise(&mut self, id: BackendId, request: &Request<'_>, now: Time) -> (u64, u32) {
        let (dispatch, in_flight) = self.backends.raise(id);
        let open = Open {
            backend: id,
            class: request.class,
            at: now,
            in_flight,
            spell: self.ejections.spell(id),
        };
        self.open.insert(dispatch, open);
        (dispatch, in_flight - 1)
    }

    fn with_ids(
        spec: &Spec,
        members: &[(BackendId, NewBackend, pool::Drained)],
        options: Options,
    ) -> Result<Self, PoolError> {
        let backends = pool::pool_of(members, options.rules.panic_percent)?;
        spec.check(&backends, &options.context)
            .map_err(PoolError::Refused)?;
        let mut dispatcher = Self {
            spec: spec.clone(),
            strategy: spec.build(&options.context),
            backends,
            strategy_rng: stream(options.seed, Purpose::Strategy, 0, 0),
            slow_start_rng: stream(options.seed, Purpose::SlowStart, 0, 0),
            ejections: Ejections::new(options.rules.ejection, options.seed),
            fail_hold: options.rules.fail_hold.map(FailHold::new),
            options,
            now: Time::ZERO,
            open: OpenDispatches::default(),
            told: Told::default(),
            warming: Vec::new(),
            probes: Vec::new(),
        };
        dispatcher
            .strategy
            .on_backends_changed(Time::ZERO, &dispatcher.backends);
        Ok(dispatcher)
    }

    /// The backend with this number, if it is a member.
    fn member(&mut self, id: BackendId) -> Result<&mut Backend, PoolError> {
        self.backends
            .get_mut(id)
            .filter(|b| b.member)
            .ok_or(PoolError::UnknownBackend(id))
    }
}

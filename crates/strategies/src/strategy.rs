//! The one trait of the crate: a rule that picks.

use crate::backends::Backends;
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::report::Report;

/// The source of a strategy's draws.
pub type Rng = dyn rand_core::RngCore;

/// A load-balancing rule: pure code without clock, I/O or global randomness.
///
/// The dispatcher calls it in one total order: time never decreases; `on_dispatch` follows its pick
/// with nothing in between; every dispatch gets exactly one `on_response`, which may be for a backend
/// that was removed or ejected meanwhile; reports may be late, missing or doubled, and older ones
/// than the stored one never arrive here. In_flight is counted by the dispatcher, never here.
///
/// Reads never change state: projecting a mean to `now` is not an update.
pub trait Strategy: std::fmt::Debug + Send + Duplicate {
    /// Chooses among `backends.eligible()`; `None` only if that is empty.
    fn pick(
        &mut self,
        now: Time,
        request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId>;

    /// What the last pick predicted for a backend, ms; `None` if it predicts nothing.
    fn predicted_ms(&self, _backend: BackendId) -> Option<f64> {
        None
    }

    /// Picks made by own counts because a report that the strategy compares by was missing, too old
    /// or impossible.
    fn stand_ins(&self) -> u64 {
        0
    }

    /// A pick was dispatched; its in_flight is already raised.
    fn on_dispatch(
        &mut self,
        _now: Time,
        _backend: BackendId,
        _request: &Request<'_>,
        _backends: &Backends,
    ) {
    }

    /// A dispatch ended; its in_flight is already lowered.
    fn on_response(
        &mut self,
        _now: Time,
        _backend: BackendId,
        _outcome: &Outcome,
        _backends: &Backends,
    ) {
    }

    /// A report arrived and is stored in `backends`.
    fn on_stats(
        &mut self,
        _now: Time,
        _backend: BackendId,
        _report: &Report,
        _backends: &Backends,
    ) {
    }

    /// The list of members, a weight, cores, a drain or an ejection changed. Also called once before
    /// the first pick. Rebuild tables, keep the rest.
    fn on_backends_changed(&mut self, _now: Time, _backends: &Backends) {}

    /// Names backends to be probed now; called after `on_dispatch`, only if the registry entry says
    /// `needs_probes`.
    fn probe_targets(
        &mut self,
        _now: Time,
        _backends: &Backends,
        _rng: &mut Rng,
        _out: &mut Vec<BackendId>,
    ) {
    }
}

/// Copies a boxed strategy with all its state; implemented for everything that is `Clone`.
pub trait Duplicate {
    /// A copy that goes on from the same state.
    fn duplicate(&self) -> Box<dyn Strategy>;
}

impl<T: Strategy + Clone + 'static> Duplicate for T {
    fn duplicate(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Strategy> {
    fn clone(&self) -> Self {
        (**self).duplicate()
    }
}

//! Smooth weighted round robin: shares as the weights say, spread as evenly as whole requests allow.
//!
//! Each pick adds every backend's weight to its credit, takes the largest credit and subtracts the
//! sum from it: `ABCABACBA` at 4/3/2. Cost O(n) up to 16
//! backends and with `max-fails`, else O(distinct weights + log n). Not when work per request varies much:
//! it never looks at the load. Source: nginx's `round robin` with `weight`, including, on request, its
//! effective weight (`max-fails`).

use super::start::{self, Start};
use crate::backends::Backends;
use crate::choose::{Credits, Turns};
use crate::registry::{Context, Entry, Group, HonorsWeights, Kind, Parameter, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::rng::unit;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        start::PARAMETER,
        Parameter {
            name: "max-fails",
            kind: Kind::Integer { min: 1, max: 100 },
            or: &["off"],
            default: "off",
            summary: "a failure takes weight/max-fails from the working weight, every pick gives 1 back",
        },
    ],
    randomized: |spec| spec.is("start", "random"),
    honors_weights: HonorsWeights::Yes,
    ..Entry::new(
        "smooth-weighted-round-robin",
        Group::LoadBlind,
        "shares as the weights say, spread evenly (ABCABACBA)",
        |spec, context| Box::new(SmoothWeightedRoundRobin::new(spec, context)),
    )
};

#[derive(Debug, Clone)]
struct SmoothWeightedRoundRobin {
    start: Start,
    max_fails: Option<i64>,
    few: usize,
    credits: Credits,
    /// The same for a large pool; none with `max_fails`, where weights change at every pick.
    turns: Option<Turns>,
    /// Working weights by id; only with `max_fails`.
    working: Vec<i64>,
}

impl SmoothWeightedRoundRobin {
    fn new(spec: &Spec, context: &Context) -> Self {
        Self {
            start: Start::of(spec),
            max_fails: spec.integer("max-fails").map(|n| n as i64),
            few: context.few,
            credits: Credits::default(),
            turns: None,
            working: Vec::new(),
        }
    }

    fn step(&mut self, backends: &Backends) -> Option<BackendId> {
        if let Some(turns) = &mut self.turns {
            return turns.step(backends);
        }
        if self.max_fails.is_none() {
            return self.credits.step_over(backends.eligible());
        }
        let working = &mut self.working;
        self.credits.step(backends.eligible().map(|b| {
            let weight = &mut working[b.id.index()];
            let used = *weight;
            *weight = (used + 1).min(i64::from(b.weight));
            (b.id, used)
        }))
    }

    fn begin_at_random(&mut self, backends: &Backends, rng: &mut Rng) {
        let period = start::period(backends.eligible());
        if let Some(picks) = start::picks_to_discard(period, rng) {
            let mut turns = Turns::of(&self.credits, backends);
            for _ in 0..picks {
                turns.step(backends);
            }
            turns.settle(&mut self.credits);
        } else {
            for backend in backends.eligible() {
                let credit = (unit(rng) * f64::from(backend.weight)) as i64;
                self.credits.set(backend.id, -credit);
            }
        }
        let is_kept = self.turns.is_some();
        self.turns = is_kept.then(|| Turns::of(&self.credits, backends));
    }
}

impl Strategy for SmoothWeightedRoundRobin {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if backends.eligible_len() > 0 && self.start.take_random() {
            self.begin_at_random(backends, rng);
        }
        self.step(backends)
    }

    fn on_response(&mut self, _now: Time, id: BackendId, outcome: &Outcome, backends: &Backends) {
        let (Some(max_fails), true) = (self.max_fails, outcome.status.is_failure()) else {
            return;
        };
        if let Some(backend) = backends.get(id).filter(|b| b.member) {
            let weight = &mut self.working[id.index()];
            *weight = (*weight - i64::from(backend.weight) / max_fails).max(0);
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        if let Some(turns) = self.turns.take() {
            turns.settle(&mut self.credits);
        }
        self.credits.on_backends_changed(backends);
        let is_large = backends.available_ids().len() > self.few;
        if is_large && self.max_fails.is_none() {
            self.turns = Some(Turns::of(&self.credits, backends));
        }
        if self.max_fails.is_none() {
            return;
        }
        let known = self.working.len();
        self.working.resize(backends.ids_len(), 0);
        for backend in backends.members() {
            let weight = &mut self.working[backend.id.index()];
            *weight = if backend.id.index() < known {
                (*weight).min(i64::from(backend.weight))
            } else {
                i64::from(backend.weight)
            };
        }
    }
}

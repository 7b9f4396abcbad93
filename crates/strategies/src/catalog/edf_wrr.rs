//! Weighted round robin by earliest deadline: whoever is due next by its own period, 1 / weight.
//!
//! Cost O(log n). A backend that is new or back begins a period when it joins, so it never catches up
//! in a burst. Not when work per request varies much: it never looks at the load. Source: Envoy's EDF
//! scheduler, gRPC proposal A58.

use super::deadlines::Line;
use super::start::{self, Start};
use crate::backends::Backends;
use crate::registry::{Entry, Group, HonorsWeights};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::rng::unit;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[start::PARAMETER],
    randomized: |spec| spec.is("start", "random"),
    honors_weights: HonorsWeights::Yes,
    ..Entry::new(
        "edf-wrr",
        Group::LoadBlind,
        "whoever is due next by its own period of 1/weight",
        |spec, _| {
            Box::new(EdfWrr {
                start: Start::of(spec),
                line: Line::default(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct EdfWrr {
    start: Start,
    line: Line,
}

impl Strategy for EdfWrr {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if backends.eligible_len() > 0 && self.start.take_random() {
            match start::picks_to_discard(start::period(backends.available()), rng) {
                Some(picks) => {
                    for _ in 0..picks {
                        self.line.next(backends);
                    }
                }
                None => self.line.scatter(|| unit(rng)),
            }
        }
        self.line.next(backends)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.line.on_backends_changed(backends);
    }
}

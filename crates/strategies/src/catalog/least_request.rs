//! The backend with the fewest requests in flight.
//!
//! Cost O(n). Not when a backend may fail fast: errors that come at once keep it empty and attract
//! everything; use ejection. Source: Envoy's full scan, Caddy, Dubbo's least active.

use crate::backends::Backends;
use crate::choose::{Credits, Ties, least};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    aliases: &["min-concurrency", "least-connections"],
    parameters: &[Parameter {
        name: "ties",
        kind: Kind::Word(Ties::WORDS),
        or: &[],
        default: "smooth",
        summary: "who of the equally loaded: by weight in turn, by draw, or the first",
    }],
    reads: &[Read::InFlight],
    randomized: |spec| spec.is("ties", "random"),
    honors_weights: HonorsWeights::Ties,
    known_flaws: &["T13"],
    ..Entry::new(
        "least-request",
        Group::InFlight,
        "the fewest requests in flight",
        |spec, _| {
            Box::new(LeastRequest {
                ties: Ties::of(spec),
                credits: Credits::default(),
                tied: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct LeastRequest {
    ties: Ties,
    credits: Credits,
    tied: Vec<BackendId>,
}

impl Strategy for LeastRequest {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        least(backends, &mut self.tied, |a, b| {
            a.in_flight.cmp(&b.in_flight)
        });
        self.ties
            .choose(&self.tied, &mut self.credits, backends, rng)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.credits.on_backends_changed(backends);
        self.tied.reserve(backends.ids_len());
    }
}

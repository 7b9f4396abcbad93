//! The articles' combination: the least loaded; among equals by weight in turn; random without data.
//!
//! Cost O(n). With `load=polled` it herds between polls, and falls back to a draw by weight while any
//! report is missing or too old; with `load=live` loads are always known. Source: the articles.

use crate::backends::{Backend, Backends};
use crate::choose::{self, Credits, Ties};
use crate::measure;
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "load",
            kind: Kind::Word(&["live", "polled"]),
            or: &[],
            default: "live",
            summary: "own requests in flight, or the workers' polled count",
        },
        measure::MAX_AGE,
    ],
    reads: &[Read::InFlight, Read::Poll],
    randomized: |spec| spec.is("load", "polled"),
    honors_weights: HonorsWeights::Ties,
    known_flaws: &["T13"],
    ..Entry::new(
        "least-loaded-wrr",
        Group::InFlight,
        "the least loaded, among equals by weight in turn, at random by weight while loads are unknown",
        |spec, context| {
            Box::new(LeastLoadedWrr {
                polled: spec.is("load", "polled"),
                max_age_ns: measure::max_age_ns(spec, context),
                credits: Credits::default(),
                tied: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct LeastLoadedWrr {
    polled: bool,
    max_age_ns: u64,
    credits: Credits,
    tied: Vec<BackendId>,
}

impl Strategy for LeastLoadedWrr {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let max_age_ns = self.max_age_ns;
        let active = |b: &Backend| measure::fresh(b, now, max_age_ns).map(|(_, active)| active);
        if !self.polled {
            choose::least(backends, &mut self.tied, |a, b| {
                a.in_flight.cmp(&b.in_flight)
            });
        } else if backends.eligible().all(|b| active(b).is_some()) {
            choose::least(backends, &mut self.tied, |a, b| active(a).cmp(&active(b)));
        } else {
            return choose::weighted(backends, rng);
        }
        Ties::Smooth.choose(&self.tied, &mut self.credits, backends, rng)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.credits.on_backends_changed(backends);
        self.tied.reserve(backends.ids_len());
    }
}

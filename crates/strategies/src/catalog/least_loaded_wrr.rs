//! A common combination: the least loaded; among equals by weight in turn; random without data.
//!
//! Cost O(tied), with `load=polled` O(n). With `load=polled` it herds between polls, and falls back to a draw by weight while any
//! report is missing or too old; with `load=live` loads are always known. Source: common practice.

use super::least_in_flight::LeastInFlight;
use crate::backends::{Backend, Backends};
use crate::choose::{Credits, Ties, WeightTable, one_of_least};
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
            if spec.is("load", "live") {
                return Box::new(LeastInFlight::unweighted(Ties::Smooth, context));
            }
            Box::new(LeastPolledWrr {
                max_age_ns: measure::max_age_ns(spec, context),
                credits: Credits::default(),
                by_weight: WeightTable::ALIAS,
            })
        },
    )
};

/// The same on polled counts.
#[derive(Debug, Clone)]
struct LeastPolledWrr {
    max_age_ns: u64,
    credits: Credits,
    by_weight: WeightTable,
}

impl Strategy for LeastPolledWrr {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let max_age_ns = self.max_age_ns;
        let active = |b: &Backend| measure::fresh(b, now, max_age_ns).map(|(_, active)| active);
        if backends.eligible().any(|b| active(b).is_none()) {
            return self.by_weight.draw_eligible(backends, rng);
        }
        one_of_least(
            backends.eligible(),
            Ties::Smooth,
            &mut self.credits,
            rng,
            active,
        )
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.credits.on_backends_changed(backends);
        self.by_weight.rebuild(backends);
    }
}

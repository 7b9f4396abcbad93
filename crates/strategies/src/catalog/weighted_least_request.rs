//! The least (in_flight + offset) / weight.
//!
//! With offset 1 this is the shortest expected delay: it counts the request itself, so an idle pool
//! starts at the heaviest. Offset 0 with smooth ties is nginx's `least_conn`. Cost O(n). Not when a
//! backend may fail fast (use ejection). Source: Kong and HAProxy (the +1 form), nginx.

use crate::backends::{Backend, Backends};
use crate::choose::{Credits, Ties, least};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use std::cmp::Ordering;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "offset",
            kind: Kind::Decimal { min: 0.0, max: 1.0 },
            or: &[],
            default: "1",
            summary: "share of the request itself that counts as load",
        },
        Parameter {
            name: "ties",
            kind: Kind::Word(Ties::WORDS),
            or: &[],
            default: "random",
            summary: "who of the equally loaded: by weight in turn, by draw, or the first",
        },
    ],
    reads: &[Read::InFlight],
    randomized: |spec| spec.is("ties", "random"),
    honors_weights: HonorsWeights::Yes,
    known_flaws: &["T13"],
    ..Entry::new(
        "weighted-least-request",
        Group::InFlight,
        "the fewest requests in flight for its weight, this one counted",
        |spec, _| {
            Box::new(WeightedLeastRequest {
                offset: spec.decimal("offset").unwrap_or(1.0),
                ties: Ties::of(spec),
                credits: Credits::default(),
                tied: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct WeightedLeastRequest {
    offset: f64,
    ties: Ties,
    credits: Credits,
    tied: Vec<BackendId>,
}

/// Compares (in_flight + offset) / weight by cross-multiplication, so equal means equal.
fn by_load(offset: f64, a: &Backend, b: &Backend) -> Ordering {
    if offset == 0.0 || offset == 1.0 {
        let side = |q: &Backend, w: &Backend| {
            (u64::from(q.in_flight) + offset as u64) * u64::from(w.weight)
        };
        return side(a, b).cmp(&side(b, a));
    }
    let side = |q: &Backend, w: &Backend| (f64::from(q.in_flight) + offset) * f64::from(w.weight);
    side(a, b).total_cmp(&side(b, a))
}

impl Strategy for WeightedLeastRequest {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let offset = self.offset;
        least(backends, &mut self.tied, |a, b| by_load(offset, a, b));
        self.ties
            .choose(&self.tied, &mut self.credits, backends, rng)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.credits.on_backends_changed(backends);
        self.tied.reserve(backends.ids_len());
    }
}

//! Traefik's `leasttime`: mean time to first byte times requests in flight per weight.
//!
//! Ties go to the earliest deadline of `edf-wrr` among the tied. An unsampled backend scores 0; one
//! early slow sample freezes a backend out unless `forget` is set; failures count as speed. Cost O(n).
//! Source: Traefik (2025).

use super::deadlines::Deadlines;
use crate::backends::{Backend, Backends};
use crate::choose::least;
use crate::measure::{ById, FORGET, Window};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "window",
            kind: Kind::Integer {
                min: 1,
                max: 10_000,
            },
            or: &[],
            default: "100",
            summary: "responses the mean is over",
        },
        FORGET,
    ],
    reads: &[Read::InFlight, Read::Latency],
    honors_weights: HonorsWeights::Yes,
    known_flaws: &["T13", "T14"],
    ..Entry::new(
        "least-time-ttfb",
        Group::Latency,
        "mean time to first byte times requests in flight per weight",
        |spec, _| {
            Box::new(LeastTimeTtfb {
                window: spec.integer("window").unwrap_or(100) as usize,
                forget_ns: spec.duration_ns("forget"),
                samples: ById::default(),
                deadlines: Deadlines::default(),
                tied: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct LeastTimeTtfb {
    window: usize,
    forget_ns: Option<u64>,
    samples: ById<Window>,
    deadlines: Deadlines,
    tied: Vec<BackendId>,
}

impl LeastTimeTtfb {
    /// Whole milliseconds; 0 without a sample.
    fn mean_ms(&self, backend: &Backend, now: Time) -> u64 {
        let window = self.samples.get(backend.id);
        let mean_ns = window.and_then(|w| w.mean(now, backend.in_flight, self.forget_ns));
        mean_ns.map_or(0, |ns| (ns / 1e6) as u64)
    }
}

impl Strategy for LeastTimeTtfb {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        _rng: &mut Rng,
    ) -> Option<BackendId> {
        let mut tied = std::mem::take(&mut self.tied);
        let side = |b: &Backend, other: &Backend| {
            u128::from(self.mean_ms(b, now))
                * (1 + u128::from(b.in_flight))
                * u128::from(other.weight)
        };
        least(backends, &mut tied, |a, b| side(a, b).cmp(&side(b, a)));
        let id = match tied.as_slice() {
            [] => None,
            [one] => Some(*one),
            many => self.deadlines.next_among(many),
        };
        self.tied = tied;
        id
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, _backends: &Backends) {
        let window = self.samples.of(id);
        window.push(now, outcome.ttfb_ns, self.window, self.forget_ns);
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.samples.make_room(backends);
        self.deadlines.on_backends_changed(backends);
        self.tied.reserve(backends.ids_len());
    }
}

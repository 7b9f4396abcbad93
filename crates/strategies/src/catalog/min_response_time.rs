//! The least mean response time.
//!
//! Kept as the naive baseline. It looks at neither weights nor what is in flight, so it starves a
//! backend after one early slow sample, and on polled means it herds. Cost O(log n); up to 16 backends are
//! looked through. Source: common practice.

use super::least_of::LeastOf;
use super::least_sampled::LeastSampled;
use crate::backends::{Backend, Backends};
use crate::measure::{self, ById, FORGET, Measure, Parts, Rank, Sampled, Sums, Window, part};
use crate::registry::{Entry, Group, Kind, Parameter, Read};
use crate::time::Time;
use crate::values::{BackendId, Outcome};
use schema::event::Status;
use schema::report::Source;

/// What a busy backend without a sample is worth while nobody has one, ms.
pub(super) const UNKNOWN_MS: f64 = 30.0;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "window",
            kind: Kind::Integer {
                min: 0,
                max: 10_000,
            },
            or: &[],
            default: "50",
            summary: "responses the mean is over; 0 is all since the start",
        },
        Parameter {
            name: "source",
            kind: Kind::Word(&["local", "polled"]),
            or: &[],
            default: "local",
            summary: "own responses, or the mean the worker tells",
        },
        FORGET,
    ],
    reads: &[Read::Latency, Read::Poll],
    randomized: |_| true,
    known_flaws: &["T13", "T14", "T18"],
    ..Entry::new(
        "min-response-time",
        Group::Latency,
        "the least mean response time: the naive baseline",
        |spec, context| {
            if spec.is("source", "polled") {
                return Box::new(LeastOf::new(ToldMeans, context));
            }
            let measure = OwnMeans {
                window: spec.integer("window").unwrap_or(50) as usize,
                forget_ns: spec.duration_ns("forget"),
                samples: ById::default(),
            };
            Box::new(LeastSampled::new(measure, context.few))
        },
    )
};

/// Own mean latencies, ms.
#[derive(Debug, Clone)]
struct OwnMeans {
    window: usize,
    forget_ns: Option<u64>,
    samples: ById<Window>,
}

impl Sampled for OwnMeans {
    type Sample = f64;

    fn sample(&self, now: Time, backend: &Backend) -> Option<f64> {
        let window = self.samples.get(backend.id)?;
        let mean_ns = window.mean(now, backend.in_flight, self.forget_ns)?;
        Some(mean_ns / 1e6)
    }

    /// In ns.
    fn parts(&self, _epoch: u64, mean_ms: f64) -> Parts {
        [part(mean_ms * 1e6), 0]
    }

    fn typical(&self, _now: Time, known: &Sums) -> f64 {
        known.mean(0).map_or(UNKNOWN_MS, |ns| ns / 1e6)
    }

    fn load(&self, _backend: &Backend, mean_ms: f64) -> f64 {
        mean_ms
    }

    fn known_until(&self, now: Time, backend: &Backend) -> Time {
        match self.samples.get(backend.id) {
            Some(window) if backend.in_flight == 0 => {
                measure::forgotten_at(window.last, now, self.forget_ns)
            }
            _ => Time::MAX,
        }
    }

    fn learn(&mut self, now: Time, id: BackendId, outcome: &Outcome, _backends: &Backends) {
        if outcome.status != Status::Cancelled {
            let window = self.samples.of(id);
            window.push(now, outcome.latency_ns, self.window, self.forget_ns);
        }
    }

    fn make_room(&mut self, backends: &Backends) {
        self.samples.make_room(backends);
    }
}

/// The means that workers told last, however old; 0 if they told none.
#[derive(Debug, Clone, Copy)]
struct ToldMeans;

impl Measure for ToldMeans {
    type Key = Rank;

    fn key(&self, _now: Time, backend: &Backend) -> Rank {
        let told = backend.report(Source::Poll);
        Rank::of_load(told.and_then(|r| r.mean_latency_50_ms).unwrap_or(0.0))
    }
}

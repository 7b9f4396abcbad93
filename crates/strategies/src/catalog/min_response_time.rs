//! The least mean response time.
//!
//! Kept as the naive baseline. It looks at neither weights nor what is in flight, so it starves a
//! backend after one early slow sample, and on polled means it herds. Cost O(n). Source: the articles.

use crate::backends::{Backend, Backends};
use crate::choose;
use crate::measure::{self, ById, FORGET, Rank, Window};
use crate::registry::{Entry, Group, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
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
        |spec, _| {
            Box::new(MinResponseTime {
                window: spec.integer("window").unwrap_or(50) as usize,
                polled: spec.is("source", "polled"),
                forget_ns: spec.duration_ns("forget"),
                samples: ById::default(),
                ranks: Vec::new(),
                tied: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct MinResponseTime {
    window: usize,
    polled: bool,
    forget_ns: Option<u64>,
    samples: ById<Window>,
    ranks: Vec<(BackendId, Rank)>,
    tied: Vec<BackendId>,
}

impl MinResponseTime {
    fn mean(&self, backend: &Backend, now: Time) -> Option<f64> {
        let window = self.samples.get(backend.id)?;
        window
            .mean(now, backend.in_flight, self.forget_ns)
            .map(|ns| ns / 1e6)
    }

    fn rank_all(&mut self, now: Time, backends: &Backends) {
        let mut ranks = std::mem::take(&mut self.ranks);
        ranks.clear();
        if self.polled {
            let told = |b: &Backend| b.report(Source::Poll).and_then(|r| r.mean_latency_50_ms);
            ranks.extend(
                backends
                    .eligible()
                    .map(|b| (b.id, Rank::of_load(told(b).unwrap_or(0.0)))),
            );
        } else {
            let typical = measure::mean_of(backends.eligible().filter_map(|b| self.mean(b, now)));
            ranks.extend(backends.eligible().map(|b| {
                let rank = match self.mean(b, now) {
                    Some(mean) => Rank::of_load(mean),
                    None if b.in_flight == 0 => Rank::first(),
                    None => Rank::of_load(typical.unwrap_or(UNKNOWN_MS)),
                };
                (b.id, rank)
            }));
        }
        self.ranks = ranks;
    }
}

impl Strategy for MinResponseTime {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        self.rank_all(now, backends);
        choose::least_ranked(&self.ranks, &mut self.tied);
        choose::uniform_of(&self.tied, rng)
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, _backends: &Backends) {
        if outcome.status != Status::Cancelled {
            let window = self.samples.of(id);
            window.push(now, outcome.latency_ns, self.window, self.forget_ns);
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.samples.make_room(backends);
    }
}

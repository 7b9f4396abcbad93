//! Traefik's `leasttime`: mean time to first byte times requests in flight per weight.
//!
//! Ties go to the earliest deadline of `edf-wrr` among the tied. An unsampled backend scores 0; one
//! early slow sample freezes a backend out unless `forget` is set; failures count as speed. Cost O(log
//! n); up to 16 backends are looked through.
//! Source: Traefik (2025).

use super::deadlines::{Clock, Due};
use crate::backends::{Backend, Backends};
use crate::choose::{self, Key, Ranking};
use crate::measure::{ById, FORGET, Load, Window, forgotten_at};
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
        |spec, context| {
            Box::new(LeastTimeTtfb {
                window: spec.integer("window").unwrap_or(100) as usize,
                forget_ns: spec.duration_ns("forget"),
                samples: ById::default(),
                clock: Clock::default(),
                dues: Vec::new(),
                ranking: Ranking::above(context.few),
            })
        },
    )
};

/// Mean per weight first, then whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    load: Load,
    due: Due,
}

impl Key for Place {
    const LAST: Self = Self {
        load: Load::LAST,
        due: Due::LAST,
    };
}

#[derive(Debug, Clone)]
struct LeastTimeTtfb {
    window: usize,
    forget_ns: Option<u64>,
    samples: ById<Window>,
    clock: Clock,
    /// By place among the available.
    dues: Vec<Due>,
    ranking: Ranking<Place>,
}

impl LeastTimeTtfb {
    /// Mean in whole milliseconds times requests in flight, per weight; 0 without a sample.
    fn load(&self, now: Time, backend: &Backend) -> Load {
        let window = self.samples.get(backend.id);
        let mean_ns = window.and_then(|w| w.mean(now, backend.in_flight, self.forget_ns));
        let mean_ms = mean_ns.map_or(0, |ns| (ns / 1e6) as u64);
        let amount = mean_ms.saturating_mul(1 + u64::from(backend.in_flight));
        Load::new(amount.min(Load::MOST), backend.weight)
    }

    fn place(&self, now: Time, backend: &Backend, backends: &Backends) -> Place {
        let place = backends.available_place(backend.id);
        Place {
            load: self.load(now, backend),
            due: place.map_or(Due::LAST, |p| self.dues[p]),
        }
    }

    fn holds_until(&self, now: Time, backend: &Backend) -> Time {
        match self.samples.get(backend.id) {
            Some(window) if backend.in_flight == 0 => {
                forgotten_at(window.last, now, self.forget_ns)
            }
            _ => Time::MAX,
        }
    }

    fn rekey(&mut self, now: Time, id: BackendId, backends: &Backends) {
        // Taken out for the call, so that the ranking and what it is made from are apart.
        let mut ranking = std::mem::replace(&mut self.ranking, Ranking::above(0));
        ranking.rekey(backends, id, |b| {
            (self.place(now, b, backends), self.holds_until(now, b))
        });
        self.ranking = ranking;
    }

    /// Who is least, and whether a deadline had to decide.
    fn least(&mut self, now: Time, backends: &Backends) -> Option<(BackendId, bool)> {
        if !self.ranking.is_kept() {
            let least = choose::least(backends.eligible(), |b| self.place(now, b, backends))?;
            let is_tied = |b: &&Backend| self.load(now, b) == least.key.load;
            let tied = backends.eligible().filter(is_tied).count();
            return Some((least.first, tied > 1));
        }
        while let Some(id) = self.ranking.due(now, backends) {
            self.rekey(now, id, backends);
        }
        self.ranking.begin_pick(backends);
        let least = self.ranking.first(backends);
        if let Some((id, _)) = least {
            self.ranking.leave_aside(id, backends);
        }
        let second = self.ranking.first(backends);
        self.ranking.end_pick();
        let (id, key) = least?;
        Some((id, second.is_some_and(|(_, other)| other.load == key.load)))
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
        let (id, is_tied) = self.least(now, backends)?;
        if is_tied {
            let due = &mut self.dues[backends.available_place(id)?];
            *due = self.clock.use_up(*due);
            self.rekey(now, id, backends);
        }
        Some(id)
    }

    fn on_dispatch(
        &mut self,
        now: Time,
        id: BackendId,
        _request: &Request<'_>,
        backends: &Backends,
    ) {
        self.rekey(now, id, backends);
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, backends: &Backends) {
        let window = self.samples.of(id);
        window.push(now, outcome.ttfb_ns, self.window, self.forget_ns);
        self.rekey(now, id, backends);
    }

    fn on_backends_changed(&mut self, now: Time, backends: &Backends) {
        self.samples.make_room(backends);
        let known = std::mem::take(&mut self.dues);
        self.dues = self.clock.carry_over(known.into_iter(), backends);
        let mut ranking = std::mem::replace(&mut self.ranking, Ranking::above(0));
        ranking.rebuild(backends, |b| {
            (self.place(now, b, backends), self.holds_until(now, b))
        });
        self.ranking = ranking;
    }
}

//! C3's replica ranking: response time, with the queue cubed.
//!
//! load = R - V + qhat^3 * V / cores, with means R of the latency and V of the service time, and qhat
//! from own in_flight (times the number of balancers) and the piggybacked active count. Cost O(n). Not
//! when service times differ widely. Source: Suresh et al. 2015, without its rate control; V / cores
//! because a backend serves that many at once.

use super::min_response_time::UNKNOWN_MS;
use crate::backends::{Backend, Backends};
use crate::choose;
use crate::measure::{self, ById, FORGET, Rank, ms};
use crate::registry::{Entry, Group, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::event::Status;
use schema::report::{Report, Source};

/// The parameter `balancers`.
pub(super) const BALANCERS: Parameter = Parameter {
    name: "balancers",
    kind: Kind::Integer { min: 1, max: 64 },
    or: &[],
    default: "1",
    summary: "how many balancers share the pool",
};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "gain",
            kind: Kind::Decimal {
                min: 0.01,
                max: 1.0,
            },
            or: &[],
            default: "0.1",
            summary: "weight of the newest response in the means",
        },
        BALANCERS,
        FORGET,
    ],
    reads: &[Read::InFlight, Read::Latency, Read::Piggyback],
    randomized: |_| true,
    known_flaws: &["T13", "T14"],
    ..Entry::new(
        "c3",
        Group::Latency,
        "response time with the queue cubed",
        |spec, _| {
            Box::new(C3 {
                gain: spec.decimal("gain").unwrap_or(0.1),
                balancers: spec.integer("balancers").unwrap_or(1) as f64,
                forget_ns: spec.duration_ns("forget"),
                state: ById::default(),
                ranks: Vec::new(),
                tied: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone, Copy)]
struct Means {
    latency_ms: f64,
    service_ms: f64,
    last: Time,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    means: Option<Means>,
    active: Option<f64>,
}

#[derive(Debug, Clone)]
struct C3 {
    gain: f64,
    balancers: f64,
    forget_ns: Option<u64>,
    state: ById<State>,
    ranks: Vec<(BackendId, Rank)>,
    tied: Vec<BackendId>,
}

/// The ranking's formula.
pub(crate) fn load(latency_ms: f64, service_ms: f64, queue: f64, cores: f64) -> f64 {
    latency_ms - service_ms + queue * queue * queue * service_ms / cores
}

impl C3 {
    fn means(&self, backend: &Backend, now: Time) -> Option<Means> {
        let means = self.state.get(backend.id)?.means?;
        let silent = self
            .forget_ns
            .is_some_and(|f| now.since_ns(means.last) >= f);
        (backend.in_flight > 0 || !silent).then_some(means)
    }

    fn rank(&self, backend: &Backend, now: Time, typical_ms: (f64, f64)) -> Rank {
        let (means, active) = match self.means(backend, now) {
            Some(means) => {
                let active = self.state.get(backend.id).and_then(|s| s.active);
                ((means.latency_ms, means.service_ms), active.unwrap_or(0.0))
            }
            None if backend.in_flight == 0 => return Rank::first(),
            None => (typical_ms, 0.0),
        };
        let queue = 1.0 + f64::from(backend.in_flight) * self.balancers + active;
        Rank::of_load(load(means.0, means.1, queue, backend.cores))
    }
}

impl Strategy for C3 {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let sampled = || backends.eligible().filter_map(|b| self.means(b, now));
        let typical_ms = (
            measure::mean_of(sampled().map(|m| m.latency_ms)).unwrap_or(UNKNOWN_MS),
            measure::mean_of(sampled().map(|m| m.service_ms)).unwrap_or(UNKNOWN_MS),
        );
        let mut ranks = std::mem::take(&mut self.ranks);
        ranks.clear();
        ranks.extend(
            backends
                .eligible()
                .map(|b| (b.id, self.rank(b, now, typical_ms))),
        );
        self.ranks = ranks;
        choose::least_ranked(&self.ranks, &mut self.tied);
        choose::uniform_of(&self.tied, rng)
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, backends: &Backends) {
        if outcome.status == Status::Cancelled {
            return;
        }
        let (gain, forget_ns) = (self.gain, self.forget_ns);
        let cores = backends.get(id).map_or(1.0, |b| b.cores);
        let shared_by = (f64::from(outcome.in_flight_at_dispatch) / cores).max(1.0);
        let latency_ms = ms(outcome.latency_ns);
        let service_ms = outcome.service_time_ns.map_or(latency_ms / shared_by, ms);
        let state = self.state.of(id);
        let known = state
            .means
            .filter(|m| forget_ns.is_none_or(|f| now.since_ns(m.last) < f));
        state.means = Some(match known {
            None => Means {
                latency_ms,
                service_ms,
                last: now,
            },
            Some(m) => Means {
                latency_ms: m.latency_ms + gain * (latency_ms - m.latency_ms),
                service_ms: m.service_ms + gain * (service_ms - m.service_ms),
                last: now,
            },
        });
    }

    fn on_stats(&mut self, _now: Time, id: BackendId, report: &Report, _backends: &Backends) {
        let (Source::Piggyback, Some(active)) = (report.source, report.active) else {
            return;
        };
        let gain = self.gain;
        let mean = &mut self.state.of(id).active;
        let active = f64::from(active);
        *mean = Some(mean.map_or(active, |m| m + gain * (active - m)));
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.state.make_room(backends);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_worked_value_comes_out() {
        assert_eq!(super::load(120.0, 100.0, 1.0 + 2.0 + 3.0, 4.0), 5420.0);
    }
}

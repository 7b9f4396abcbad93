//! C3's replica ranking: response time, with the queue cubed.
//!
//! load = R - V + qhat^3 * V / cores, with means R of the latency and V of the service time, and qhat
//! from own in_flight (times the number of balancers) and the piggybacked active count. Cost O(log n);
//! up to 16 backends are looked through. Not when service times differ widely. Source: Suresh et al. 2015, without its rate control; V / cores
//! because a backend serves that many at once.

use super::least_sampled::LeastSampled;
use super::min_response_time::UNKNOWN_MS;
use crate::backends::{Backend, Backends};
use crate::measure::{self, ById, FORGET, Parts, Sampled, Sums, ms, part};
use crate::registry::{Entry, Group, Kind, Parameter, Read};
use crate::time::Time;
use crate::values::{BackendId, Outcome};
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
        |spec, context| {
            let measure = C3 {
                gain: spec.decimal("gain").unwrap_or(0.1),
                balancers: spec.integer("balancers").unwrap_or(1) as f64,
                forget_ns: spec.duration_ns("forget"),
                state: ById::default(),
            };
            Box::new(LeastSampled::new(measure, context.few))
        },
    )
};

#[derive(Debug, Clone, Copy)]
struct Means {
    latency_ms: f64,
    service_ms: f64,
    last: Time,
}

/// What is known of a backend.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    latency_ms: f64,
    service_ms: f64,
    active: f64,
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
}

/// The ranking's formula.
pub(crate) fn load(latency_ms: f64, service_ms: f64, queue: f64, cores: f64) -> f64 {
    latency_ms - service_ms + queue * queue * queue * service_ms / cores
}

impl Sampled for C3 {
    type Sample = Sample;

    fn sample(&self, now: Time, backend: &Backend) -> Option<Sample> {
        let state = self.state.get(backend.id)?;
        let means = state.means?;
        let is_silent = |f| now.since_ns(means.last) >= f;
        let is_known = backend.in_flight > 0 || !self.forget_ns.is_some_and(is_silent);
        is_known.then_some(Sample {
            latency_ms: means.latency_ms,
            service_ms: means.service_ms,
            active: state.active.unwrap_or(0.0),
        })
    }

    /// Latency and service time, ns.
    fn parts(&self, _epoch: u64, sample: Sample) -> Parts {
        [part(sample.latency_ms * 1e6), part(sample.service_ms * 1e6)]
    }

    fn typical(&self, _now: Time, known: &Sums) -> Sample {
        let mean_ms = |i| known.mean(i).map_or(UNKNOWN_MS, |ns| ns / 1e6);
        Sample {
            latency_ms: mean_ms(0),
            service_ms: mean_ms(1),
            active: 0.0,
        }
    }

    fn load(&self, backend: &Backend, sample: Sample) -> f64 {
        let queue = 1.0 + f64::from(backend.in_flight) * self.balancers + sample.active;
        load(sample.latency_ms, sample.service_ms, queue, backend.cores)
    }

    fn known_until(&self, now: Time, backend: &Backend) -> Time {
        match self.state.get(backend.id).and_then(|s| s.means) {
            Some(means) if backend.in_flight == 0 => {
                measure::forgotten_at(means.last, now, self.forget_ns)
            }
            _ => Time::MAX,
        }
    }

    fn learn(&mut self, now: Time, id: BackendId, outcome: &Outcome, backends: &Backends) {
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

    fn learn_report(&mut self, id: BackendId, report: &Report) {
        let (Source::Piggyback, Some(active)) = (report.source, report.active) else {
            return;
        };
        let gain = self.gain;
        let mean = &mut self.state.of(id).active;
        let active = f64::from(active);
        *mean = Some(mean.map_or(active, |m| m + gain * (active - m)));
    }

    fn make_room(&mut self, backends: &Backends) {
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

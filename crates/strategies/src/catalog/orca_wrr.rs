//! Weighted round robin whose weights come from the workers: throughput over utilization.
//!
//! weight = qps / (utilization + errors' share * penalty), renewed every `update`, walked by stride.
//! Backends without a usable report get the mean; with fewer than two usable ones it is round robin.
//! Cost of the stride. A backend that fails everything loses its share step by step. Source: gRPC
//! proposals A58 and A114.

use super::stride::Stride;
use crate::backends::Backends;
use crate::measure::{self, ById};
use crate::registry::{Entry, Group, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::report::{Report, Source};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "blackout",
            kind: Kind::Duration {
                min_ns: 0,
                max_ns: 600_000_000_000,
            },
            or: &[],
            default: "10s",
            summary: "a backend's reports count only this long after its first one",
        },
        Parameter {
            name: "expire",
            kind: Kind::Duration {
                min_ns: 1_000_000_000,
                max_ns: 3_600_000_000_000,
            },
            or: &[],
            default: "3min",
            summary: "a weight this old is not used any more",
        },
        Parameter {
            name: "update",
            kind: Kind::Duration {
                min_ns: 100_000_000,
                max_ns: 60_000_000_000,
            },
            or: &[],
            default: "1s",
            summary: "how often weights are taken over",
        },
        Parameter {
            name: "penalty",
            kind: Kind::Decimal {
                min: 0.0,
                max: 100.0,
            },
            or: &[],
            default: "1",
            summary: "how much the share of errors adds to the utilization",
        },
        Parameter {
            name: "source",
            kind: Kind::Word(&["piggyback", "poll"]),
            or: &[],
            default: "piggyback",
            summary: "which reports are read",
        },
    ],
    reads: &[Read::Piggyback, Read::Poll],
    ..Entry::new(
        "orca-wrr",
        Group::ServerReported,
        "round robin by weights that the workers' throughput and utilization give",
        |spec, context| {
            Box::new(OrcaWrr {
                blackout_ns: spec.duration_ns("blackout").unwrap_or(0),
                expire_ns: spec.duration_ns("expire").unwrap_or(u64::MAX),
                update_ns: spec.duration_ns("update").unwrap_or(1_000_000_000),
                penalty: spec.decimal("penalty").unwrap_or(1.0),
                polled: spec.is("source", "poll"),
                told: ById::default(),
                stride: Stride::new(context.few),
                weights: Vec::new(),
                renew_at: Time::ZERO,
            })
        },
    )
};

#[derive(Debug, Clone, Copy, Default)]
struct Told {
    weight: f64,
    /// The weight taken over at the last update, if it was usable then.
    taken: Option<f64>,
    /// First and last counted report.
    span: Option<(Time, Time)>,
    was_available: bool,
}

#[derive(Debug, Clone)]
struct OrcaWrr {
    blackout_ns: u64,
    expire_ns: u64,
    update_ns: u64,
    penalty: f64,
    polled: bool,
    told: ById<Told>,
    stride: Stride,
    weights: Vec<f64>,
    renew_at: Time,
}

/// The weight that a report gives; `None` if it says nothing.
pub(crate) fn weight(report: &Report, penalty: f64) -> Option<f64> {
    let qps = report.qps.filter(|q| *q > 0.0)?;
    let utilization = report.application_utilization.or(report.utilization);
    let utilization = utilization.filter(|u| *u > 0.0)?;
    let weight = qps / (utilization + report.eps.unwrap_or(0.0) / qps * penalty);
    (weight.is_finite() && weight > 0.0).then_some(weight)
}

impl OrcaWrr {
    fn usable(&mut self, now: Time, id: BackendId) -> Option<f64> {
        let (blackout_ns, expire_ns) = (self.blackout_ns, self.expire_ns);
        let told = self.told.of(id);
        let (first, last) = told.span?;
        if now.since_ns(last) >= expire_ns {
            told.span = None;
            return None;
        }
        (now.since_ns(first) >= blackout_ns).then_some(told.weight)
    }

    /// Takes over everyone's weight as of now.
    fn renew(&mut self, now: Time, backends: &Backends) {
        for backend in backends.available() {
            let weight = self.usable(now, backend.id);
            self.told.of(backend.id).taken = weight;
        }
        self.rebuild(backends);
    }

    /// Makes the walk anew from the weights taken over last.
    fn rebuild(&mut self, backends: &Backends) {
        let taken = |id| self.told.get(id).and_then(|t: &Told| t.taken);
        let known = || backends.available().filter_map(|b| taken(b.id));
        let mean = measure::mean_of(known()).filter(|_| known().count() >= 2);
        self.weights.clear();
        self.weights
            .extend(backends.available().map(|b| match mean {
                Some(mean) => taken(b.id).unwrap_or(mean),
                None => 1.0,
            }));
        self.stride.set_weights(self.weights.iter().copied());
    }
}

impl Strategy for OrcaWrr {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        _rng: &mut Rng,
    ) -> Option<BackendId> {
        if now >= self.renew_at {
            self.renew(now, backends);
            self.renew_at = now.plus_ns(self.update_ns);
        }
        self.stride.next(backends)
    }

    fn on_stats(&mut self, now: Time, id: BackendId, report: &Report, _backends: &Backends) {
        let wanted = if self.polled {
            Source::Poll
        } else {
            Source::Piggyback
        };
        let (Some(weight), true) = (weight(report, self.penalty), report.source == wanted) else {
            return;
        };
        let told = self.told.of(id);
        told.weight = weight;
        let first = told.span.map_or(now, |(first, _)| first);
        told.span = Some((first, now));
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.told.make_room(backends);
        for backend in backends.members() {
            let told = self.told.of(backend.id);
            // Readmission after an ejection starts the blackout anew; a drain does not.
            let ejected = backend.ejected_until.is_some();
            if told.was_available && ejected {
                told.span = None;
                told.taken = None;
            }
            told.was_available = !ejected;
        }
        self.rebuild(backends);
    }
}

#[cfg(test)]
mod tests {
    use super::weight;
    use schema::report::{Report, Source};

    #[test]
    fn the_worked_weight_comes_out() {
        let report = Report {
            qps: Some(30.0),
            utilization: Some(0.6),
            eps: Some(3.0),
            ..Report::empty(Source::Piggyback, 0)
        };
        let rounded = weight(&report, 1.0).map(|w| (w * 100.0).round() / 100.0);
        assert_eq!(rounded, Some(42.86));
        let idle = Report {
            qps: Some(0.0),
            ..report
        };
        assert_eq!(weight(&idle, 1.0), None);
    }
}

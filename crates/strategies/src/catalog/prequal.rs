//! Prequal: probe a few at random, keep the answers in a small pool, take the best one there.
//!
//! An answer is hot if its requests in flight are above a quantile of those probed lately. A cold
//! answer of least latency is taken first; if all are hot, the one with the fewest in flight. Weights are
//! ignored: capacity shows in what is in flight. Cost O(pool). Source: Wydrowski et al. 2024 (async
//! mode). The sinkhole rule is ours: a backend whose failures exceed a fifth ranks behind all others,
//! else one that fails at once would look best.
//!
//! Not for long requests on ten backends or more, unless `q-rif=0`: see "Prequal and remembered latencies"
//! in the crate's README.

use crate::backends::Backends;
use crate::choose::{self, Draws};
use crate::measure::ById;
use crate::registry::{Entry, Group, Kind, Parameter, Read, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::event::Status;
use schema::report::{Report, Source};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Failure share above which a backend ranks last.
const SINKHOLE_SHARE: f64 = 0.2;
/// Weight of the newest outcome in the failure share.
const FAILURE_GAIN: f64 = 0.2;
/// Time constant of the failure share, ns.
const FAILURE_DECAY_NS: f64 = 10e9;

const fn decimal(
    name: &'static str,
    max: f64,
    default: &'static str,
    summary: &'static str,
) -> Parameter {
    Parameter {
        name,
        kind: Kind::Decimal { min: 0.0, max },
        or: &[],
        default,
        summary,
    }
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        decimal("probes", 16.0, "3", "probes per dispatch; fractions add up"),
        Parameter {
            name: "pool",
            kind: Kind::Integer { min: 2, max: 64 },
            or: &[],
            default: "16",
            summary: "answers kept",
        },
        Parameter {
            name: "max-age",
            kind: Kind::Duration {
                min_ns: 1_000_000,
                max_ns: 600_000_000_000,
            },
            or: &[],
            default: "1s",
            summary: "an older answer is dropped",
        },
        decimal(
            "remove",
            16.0,
            "1",
            "answers dropped per pick, the oldest and the worst in turn",
        ),
        decimal(
            "delta",
            10.0,
            "1",
            "how far the pool may grow: an answer is used the more often",
        ),
        decimal(
            "q-rif",
            1.0,
            "0.84",
            "quantile of requests in flight above which a backend is hot",
        ),
        Parameter {
            name: "rif-window",
            kind: Kind::Integer { min: 8, max: 1024 },
            or: &[],
            default: "128",
            summary: "answers the quantile is over",
        },
        Parameter {
            name: "sinkhole",
            kind: Kind::Word(&["on", "off"]),
            or: &[],
            default: "on",
            summary: "whether failing backends rank last",
        },
    ],
    reads: &[Read::Probe, Read::Status],
    randomized: |_| true,
    needs_probes: true,
    ..Entry::new(
        "prequal",
        Group::ServerReported,
        "the best of a pool of probed backends: cold and fast before hot",
        |spec, _| Box::new(Prequal::new(spec)),
    )
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer {
    pub(crate) backend: BackendId,
    pub(crate) at: Time,
    /// Grows with arrival.
    pub(crate) number: u64,
    pub(crate) in_flight: u32,
    pub(crate) latency_ms: f64,
    /// `None`: as often as one likes.
    uses_left: Option<u32>,
}

impl Answer {
    /// How it compares with another: the lesser one is picked.
    fn compare(&self, other: &Self, heat: impl Fn(&Self) -> u8) -> Ordering {
        let (mine, others) = (heat(self), heat(other));
        let by_latency = self.latency_ms.total_cmp(&other.latency_ms);
        let by_in_flight = self.in_flight.cmp(&other.in_flight);
        let among_alike = if mine == 0 {
            by_latency.then(by_in_flight)
        } else {
            by_in_flight.then(by_latency)
        };
        mine.cmp(&others)
            .then(among_alike)
            .then(other.number.cmp(&self.number))
    }
}

/// The last probed numbers in flight, in order of arrival and sorted.
#[derive(Debug, Clone, Default)]
struct Probed {
    by_arrival: VecDeque<u32>,
    sorted: Vec<u32>,
}

impl Probed {
    fn push(&mut self, in_flight: u32, length: usize) {
        self.by_arrival.push_back(in_flight);
        let at = self.sorted.partition_point(|v| *v < in_flight);
        self.sorted.insert(at, in_flight);
        if self.by_arrival.len() > length {
            let oldest = self.by_arrival.pop_front().unwrap_or(0);
            let at = self.sorted.partition_point(|v| *v < oldest);
            self.sorted.remove(at);
        }
    }
}

/// The number in flight at a quantile of some sorted ones; `None` if everything is above it.
pub(crate) fn threshold(sorted: &[u32], quantile: f64) -> Option<u32> {
    let rank = libm::ceil(quantile * sorted.len() as f64) as usize;
    rank.checked_sub(1).map(|i| sorted[i.min(sorted.len() - 1)])
}

#[derive(Debug, Clone)]
struct Prequal {
    probes: f64,
    capacity: usize,
    max_age_ns: u64,
    remove: f64,
    delta: f64,
    quantile: f64,
    window: usize,
    sinkhole: bool,
    pool: Vec<Answer>,
    probed: Probed,
    /// Failure shares and when they were true.
    failures: ById<(f64, Time)>,
    answers: u64,
    probes_due: f64,
    uses_due: f64,
    removals_due: f64,
    oldest_is_next: bool,
    draws: Draws,
}

impl Prequal {
    fn new(spec: &Spec) -> Self {
        let decimal = |name| spec.decimal(name).unwrap_or(0.0);
        Self {
            probes: decimal("probes"),
            capacity: spec.integer("pool").unwrap_or(16) as usize,
            max_age_ns: spec.duration_ns("max-age").unwrap_or(1_000_000_000),
            remove: decimal("remove"),
            delta: decimal("delta"),
            quantile: decimal("q-rif"),
            window: spec.integer("rif-window").unwrap_or(128) as usize,
            sinkhole: spec.is("sinkhole", "on"),
            pool: Vec::new(),
            probed: Probed::default(),
            failures: ById::default(),
            answers: 0,
            probes_due: 0.0,
            uses_due: 0.0,
            removals_due: 0.0,
            oldest_is_next: true,
            draws: Draws::default(),
        }
    }

    /// 0 cold, 1 hot, 2 failing.
    fn heat(&self, now: Time, answer: &Answer) -> u8 {
        let (share, stamp) = self
            .failures
            .get(answer.backend)
            .copied()
            .unwrap_or_default();
        let share = share * libm::exp(-(now.since_ns(stamp) as f64) / FAILURE_DECAY_NS);
        if self.sinkhole && share > SINKHOLE_SHARE {
            return 2;
        }
        let threshold = threshold(&self.probed.sorted, self.quantile);
        u8::from(threshold.is_none_or(|t| answer.in_flight > t))
    }

    /// How often an answer may be used, the fraction carried on to the next one.
    fn uses(&mut self, backends: &Backends) -> Option<u32> {
        let n = backends.available_ids().len() as f64;
        let m = self.capacity as f64;
        let denominator = (1.0 - m / n) * self.probes - self.remove;
        if m >= n || denominator <= 0.0 {
            return None;
        }
        self.uses_due += ((1.0 + self.delta) / denominator).max(1.0);
        let whole = libm::floor(self.uses_due);
        self.uses_due -= whole;
        Some(whole as u32)
    }

    fn use_up(&mut self, at: usize) {
        let answer = &mut self.pool[at];
        answer.in_flight += 1;
        if let Some(left) = &mut answer.uses_left {
            *left -= 1;
            if *left == 0 {
                self.pool.remove(at);
            }
        }
    }

    fn remove_some(&mut self, now: Time, backends: &Backends) {
        let is_small = self.capacity >= backends.available_ids().len();
        self.removals_due += self.remove;
        while self.removals_due >= 1.0 {
            self.removals_due -= 1.0;
            if self.pool.is_empty() || (is_small && self.pool.len() <= 2) {
                continue;
            }
            let at = if self.oldest_is_next {
                0
            } else {
                self.worst(now)
            };
            self.pool.remove(at);
            self.oldest_is_next = !self.oldest_is_next;
        }
    }

    /// The hottest if any is hot, else the slowest.
    fn worst(&self, now: Time) -> usize {
        let rank = |a: &Answer| {
            let heat = self.heat(now, a);
            (
                heat,
                if heat > 0 {
                    f64::from(a.in_flight)
                } else {
                    a.latency_ms
                },
            )
        };
        let compare = |a: &(u8, f64), b: &(u8, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        let ranks = self.pool.iter().map(rank).enumerate();
        ranks
            .max_by(|(_, a), (_, b)| compare(a, b))
            .map_or(0, |(at, _)| at)
    }
}

impl Strategy for Prequal {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let max_age_ns = self.max_age_ns;
        self.pool.retain(|a| now.since_ns(a.at) <= max_age_ns);
        let is_usable = |a: &Answer| backends.is_eligible(a.backend);
        if self.pool.iter().filter(|a| is_usable(a)).count() < 2 {
            return choose::uniform(backends, rng);
        }
        let usable = self.pool.iter().enumerate().filter(|(_, a)| is_usable(a));
        let (at, best) = usable.min_by(|(_, a), (_, b)| a.compare(b, |x| self.heat(now, x)))?;
        let id = best.backend;
        self.use_up(at);
        self.remove_some(now, backends);
        Some(id)
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, _backends: &Backends) {
        if outcome.status == Status::Cancelled {
            return;
        }
        let failed = outcome.status.is_failure();
        let (share, stamp) = self.failures.of(id);
        let projected = *share * libm::exp(-(now.since_ns(*stamp) as f64) / FAILURE_DECAY_NS);
        let x = if failed { 1.0 } else { 0.0 };
        *share = projected + FAILURE_GAIN * (x - projected);
        *stamp = now;
        if failed && self.sinkhole {
            self.pool.retain(|a| a.backend != id);
        }
    }

    fn on_stats(&mut self, now: Time, id: BackendId, report: &Report, backends: &Backends) {
        let (Source::Probe, Some(in_flight)) = (report.source, report.active) else {
            return;
        };
        if backends.available_place(id).is_none() {
            return;
        }
        self.probed.push(in_flight, self.window);
        let available = backends.available_ids().len();
        let is_small = self.capacity >= available;
        if is_small {
            self.pool.retain(|a| a.backend != id);
        }
        self.answers += 1;
        let uses_left = self.uses(backends);
        self.pool.push(Answer {
            backend: id,
            at: now,
            number: self.answers,
            in_flight,
            latency_ms: report.rif_latency_ms.unwrap_or(0.0),
            uses_left,
        });
        let capacity = if is_small { available } else { self.capacity };
        if self.pool.len() > capacity {
            self.pool.remove(0);
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.failures.make_room(backends);
        self.pool
            .retain(|a| backends.available_place(a.backend).is_some());
    }

    fn probe_targets(
        &mut self,
        _now: Time,
        backends: &Backends,
        rng: &mut Rng,
        out: &mut Vec<BackendId>,
    ) {
        let available = backends.available_ids();
        self.probes_due += self.probes;
        let whole = libm::floor(self.probes_due);
        self.probes_due -= whole;
        let count = (whole as usize).min(available.len());
        let drawn = self.draws.distinct(available.len(), count, rng);
        out.extend(drawn.iter().map(|place| available[*place as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, threshold};
    use crate::time::Time;
    use crate::values::BackendId;

    #[test]
    fn the_threshold_is_at_the_rank_of_the_quantile() {
        let probed = [1, 1, 2, 3, 5];
        assert_eq!(threshold(&probed, 0.84), Some(5));
        assert_eq!(threshold(&probed, 0.6), Some(2));
        assert_eq!(threshold(&probed, 0.0), None);
    }

    #[test]
    fn a_cold_answer_of_least_latency_is_best() {
        let answer = |id, in_flight, latency_ms| Answer {
            backend: BackendId(id),
            at: Time::ZERO,
            number: 0,
            in_flight,
            latency_ms,
            uses_left: None,
        };
        let pool = [answer(0, 3, 40.0), answer(1, 1, 90.0), answer(2, 2, 60.0)];
        let heat = |a: &Answer| u8::from(a.in_flight > 2);
        let best = pool.iter().min_by(|a, b| a.compare(b, heat));
        assert_eq!(best.map(|a| a.backend), Some(BackendId(2)));
        let all_hot = pool.iter().min_by(|a, b| a.compare(b, |_| 1));
        assert_eq!(all_hot.map(|a| a.backend), Some(BackendId(1)));
    }
}

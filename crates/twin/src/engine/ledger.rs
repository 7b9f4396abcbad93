//! A worker's own record, as the real worker keeps it: the last responses, the last second.
//!
//! Rates compare with the youngest reading that is at least a second old; readings are taken at
//! multiples of 100 ms. Between two events of a station its use is linear in time, so readings are
//! worked out at the next event instead of being events themselves.

use crate::station::Used;
use schema::report::{Report, Source};
use std::collections::VecDeque;

/// Responses behind the mean latency.
pub(super) const LAST: usize = 50;
/// Responses remembered for the latency at the present number held.
pub(super) const REMEMBERED: usize = 200;
/// Of those, how many count: the nearest in number held at arrival.
const NEAREST: usize = 16;
/// A remembered response is recent for this long, s.
const RECENT: f64 = 5.0;
/// Time between readings, s.
const EVERY: f64 = 0.1;
/// Span of the rates, s.
const SECOND: f64 = 1.0;

#[derive(Debug, Clone, Copy)]
struct Response {
    held_before: u32,
    latency_ms: f64,
    service_ms: f64,
    at: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    at: f64,
    busy: f64,
    work: f64,
    completions: u64,
    failures: u64,
}

/// One worker's record.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    cores: f64,
    keep: usize,
    sequence: u64,
    completions: u64,
    failures: u64,
    responses: VecDeque<Response>,
    readings: VecDeque<Reading>,
    last: Reading,
}

impl Ledger {
    pub(super) fn new(cores: f64, keep: usize) -> Self {
        Self {
            cores,
            keep,
            sequence: 0,
            completions: 0,
            failures: 0,
            responses: VecDeque::new(),
            readings: VecDeque::from([Reading::default()]),
            last: Reading::default(),
        }
    }

    /// Takes the readings due up to `now`; before anything changes at the station.
    pub(super) fn pass(&mut self, now: f64, used: &Used) {
        let next = Reading {
            at: now,
            busy: used.busy,
            work: used.work,
            completions: self.completions,
            failures: self.failures,
        };
        let span = now - self.last.at;
        let due = (now / EVERY).floor();
        // Older readings than those of the last second would be dropped at once.
        let mut turn = ((self.last.at / EVERY).floor() + 1.0).max(due - 11.0);
        while turn <= due {
            let at = turn * EVERY;
            let part = if span > 0.0 {
                ((at - self.last.at) / span).clamp(0.0, 1.0)
            } else {
                1.0
            };
            let between = |a: f64, b: f64| a + part * (b - a);
            self.readings.push_back(Reading {
                at,
                busy: between(self.last.busy, next.busy),
                work: between(self.last.work, next.work),
                ..next
            });
            turn += 1.0;
        }
        while self.readings.get(1).is_some_and(|r| now - r.at >= SECOND) {
            self.readings.pop_front();
        }
        self.last = next;
    }

    pub(super) fn arrive(&mut self) {
        self.sequence += 1;
    }

    pub(super) fn complete(&mut self, held_before: u32, reached: f64, started: f64, now: f64) {
        self.sequence += 1;
        self.completions += 1;
        if self.responses.len() == self.keep {
            self.responses.pop_back();
        }
        self.responses.push_front(Response {
            held_before,
            latency_ms: (now - reached) * 1e3,
            service_ms: (now - started) * 1e3,
            at: now,
        });
    }

    /// A request that was held has gone, or was answered with an error.
    pub(super) fn fail(&mut self) {
        self.sequence += 1;
        self.failures += 1;
    }

    /// A new process remembers nothing.
    pub(super) fn forget(&mut self) {
        self.responses.clear();
        self.sequence = 0;
    }

    /// What the worker says of itself, holding `active`; [`Ledger::pass`] was called for `now`.
    pub(super) fn report(&self, source: Source, now: f64, active: u32) -> Report {
        let full = |r: &&Reading| now - r.at >= SECOND;
        let since = self.readings.iter().rev().find(full);
        let since = since.or(self.readings.front()).copied().unwrap_or_default();
        let span = now - since.at;
        let busy = self.last.busy - since.busy;
        let per_second = |count: u64| if span > 0.0 { count as f64 / span } else { 0.0 };
        let utilization = if span > 0.0 {
            (busy / (span * self.cores)).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let rif = matches!(source, Source::Poll | Source::Probe) && self.keep > LAST;
        Report {
            sequence: Some(self.sequence),
            active: Some(active),
            mean_latency_50_ms: self.mean_of_last(|r| r.latency_ms),
            service_time_mean_ms: self.mean_of_last(|r| r.service_ms),
            utilization: Some(utilization),
            qps: Some(per_second(self.completions - since.completions)),
            eps: Some(per_second(self.failures - since.failures)),
            cpu_percent: Some(utilization * self.cores * 100.0),
            rif_latency_ms: if rif {
                self.rif_latency_ms(now, active)
            } else {
                None
            },
            // Less than a microsecond of use says nothing.
            speed: (busy > 1e-6).then(|| (self.last.work - since.work) / busy),
            ..Report::empty(source, 0)
        }
    }

    fn mean_of_last(&self, value: impl Fn(&Response) -> f64) -> Option<f64> {
        let last = self.responses.len().min(LAST);
        let sum: f64 = self.responses.iter().take(last).map(value).sum();
        (last > 0).then(|| sum / last as f64)
    }

    fn rif_latency_ms(&self, now: f64, active: u32) -> Option<f64> {
        let recent = |r: &&Response| now - r.at <= RECENT;
        let mut near: Vec<&Response> = self.responses.iter().filter(recent).collect();
        if near.is_empty() {
            near = self.responses.iter().collect();
        }
        near.sort_by_key(|r| r.held_before.abs_diff(active));
        let mut latencies: Vec<f64> = near.iter().take(NEAREST).map(|r| r.latency_ms).collect();
        latencies.sort_by(f64::total_cmp);
        let n = latencies.len();
        (n > 0).then(|| (latencies[(n - 1) / 2] + latencies[n / 2]) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{LAST, Ledger, REMEMBERED};
    use crate::station::Used;
    use schema::report::Source;

    fn used(busy: f64, work: f64) -> Used {
        Used {
            held: 0.0,
            busy,
            work,
        }
    }

    #[test]
    fn rates_are_those_of_the_last_second_and_a_bit() {
        let mut ledger = Ledger::new(2.0, LAST);
        // Idle for 10 s, then one core at half speed until 12.05 s.
        ledger.pass(10.0, &used(0.0, 0.0));
        ledger.arrive();
        ledger.pass(12.05, &used(2.05, 1.025));
        ledger.complete(0, 10.0, 10.0, 12.05);
        let report = ledger.report(Source::Poll, 12.05, 0);
        // The youngest reading a second old is that of 11.0 s.
        assert_eq!(report.utilization.map(|u| (u * 1e6).round()), Some(0.5e6));
        assert_eq!(report.speed.map(|s| (s * 1e6).round()), Some(0.5e6));
        assert_eq!(
            report.qps.map(|q| (q * 1e6).round()),
            Some((1e6 / 1.05_f64).round())
        );
        assert_eq!(report.mean_latency_50_ms.map(f64::round), Some(2050.0));
        assert_eq!((report.sequence, report.rif_latency_ms), (Some(2), None));
    }

    #[test]
    fn the_mean_is_of_the_last_fifty_and_the_median_of_the_nearest() {
        let mut ledger = Ledger::new(1.0, REMEMBERED);
        for i in 0..300_u32 {
            let now = f64::from(i) * 0.01;
            ledger.arrive();
            ledger.complete(i % 10, now - f64::from(i % 10 + 1) * 1e-3, now, now);
        }
        ledger.pass(3.0, &used(0.0, 0.0));
        let report = ledger.report(Source::Probe, 3.0, 7);
        assert_eq!(
            report.mean_latency_50_ms.map(|m| (m * 1e6).round()),
            Some(5.5e6)
        );
        assert_eq!(report.rif_latency_ms.map(|m| (m * 1e6).round()), Some(8e6));
        assert_eq!(report.speed, None);
    }
}

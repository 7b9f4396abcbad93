//! What the worker knows of its own requests: counts, the last 50, the last second.
//!
//! Only the async thread writes here, so a reading is never torn between two counts. Times are
//! arguments; nothing here reads a clock.

use crate::engine::{Done, Totals};
use std::collections::VecDeque;

/// Responses behind `mean_latency_ms_last_50`.
const LAST: usize = 50;
/// Responses remembered for `rif_latency_ms`.
const REMEMBERED: usize = 200;
/// Of those, how many count: the nearest in number held at arrival.
const NEAREST: usize = 16;
/// A remembered response is recent for this long, ns.
const RECENT_NS: f64 = 5e9;
/// Span of the rates, ns.
const SECOND_NS: f64 = 1e9;
/// Samples kept: a little over one second at ten a second.
const MAX_SAMPLES: usize = 64;

/// Counts since the start of the process or the last reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Answered with success.
    pub(crate) completed: u64,
    /// Answered with an error of the worker's own.
    pub(crate) failed: u64,
    /// Given up by the client.
    pub(crate) aborted: u64,
    /// Completed after the nominal time because of their own burn.
    pub(crate) late_burns: u64,
}

/// A reading of everything that only ever grows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sample {
    pub(crate) at_ns: f64,
    pub(crate) cpu_ns: u64,
    pub(crate) totals: Totals,
    completions: u64,
    failures: u64,
}

/// What the last second was like.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    /// Busy share of the cores, 0..1.
    pub(crate) utilization: f64,
    /// Completions per second.
    pub(crate) qps: f64,
    /// Failures per second.
    pub(crate) eps: f64,
    /// Work done over busy core time; `None` when idle.
    pub(crate) speed: Option<f64>,
    /// CPU of the process, 100 = one core; `None` in the first second.
    pub(crate) cpu_percent: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Response {
    held_on_arrival: u32,
    latency_ms: f64,
    service_ms: f64,
    at_ns: f64,
}

/// The worker's own record; see the module.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    active: u32,
    sequence: u64,
    counts: Counts,
    completions_ever: u64,
    failures_ever: u64,
    responses: VecDeque<Response>,
    samples: VecDeque<Sample>,
}

impl Ledger {
    /// Requests held now.
    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    /// Grows by one with every change of the counts.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Counts since start or reset.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Notes an arrival; gives the number held before it.
    pub(crate) fn arrive(&mut self) -> u32 {
        self.sequence += 1;
        self.active += 1;
        self.active - 1
    }

    /// Notes the success of a request that found `held_on_arrival` others.
    pub(crate) fn complete(&mut self, held_on_arrival: u32, done: &Done) {
        self.leave();
        self.completions_ever += 1;
        self.counts.completed += 1;
        self.counts.late_burns += u64::from(done.late_burn);
        if self.responses.len() == REMEMBERED {
            self.responses.pop_back();
        }
        self.responses.push_front(Response {
            held_on_arrival,
            latency_ms: (done.ended_ns - done.arrived_ns) * 1e-6,
            service_ms: (done.ended_ns - done.started_ns) * 1e-6,
            at_ns: done.ended_ns,
        });
    }

    /// Notes that the client of a request held has gone.
    pub(crate) fn abort(&mut self) {
        self.leave();
        self.counts.aborted += 1;
    }

    /// Notes a request answered with an error without having been held.
    pub(crate) fn refuse(&mut self) {
        self.sequence += 1;
        self.failures_ever += 1;
        self.counts.failed += 1;
    }

    /// Clears the counts and the memory of responses; what is held and the rates stay.
    pub(crate) fn reset(&mut self) {
        self.sequence += 1;
        self.counts = Counts::default();
        self.responses.clear();
    }

    /// Mean latency of the last 50 responses, ms; `None` before the first.
    pub(crate) fn mean_latency_ms(&self) -> Option<f64> {
        self.mean_of_last(|r| r.latency_ms)
    }

    /// Mean service time of the last 50 responses, ms; `None` before the first.
    pub(crate) fn mean_service_ms(&self) -> Option<f64> {
        self.mean_of_last(|r| r.service_ms)
    }

    /// Median latency of the 16 responses that arrived at the number held nearest to the present
    /// one, newest first on equality, of the last 5 s if there are any, else of all, ms.
    pub(crate) fn rif_latency_ms(&self, now_ns: f64) -> Option<f64> {
        let recent = |r: &&Response| now_ns - r.at_ns <= RECENT_NS;
        let mut near: Vec<&Response> = self.responses.iter().filter(recent).collect();
        if near.is_empty() {
            near = self.responses.iter().collect();
        }
        near.sort_by_key(|r| r.held_on_arrival.abs_diff(self.active));
        let mut latencies: Vec<f64> = near.iter().take(NEAREST).map(|r| r.latency_ms).collect();
        latencies.sort_by(f64::total_cmp);
        let n = latencies.len();
        (n > 0).then(|| (latencies[(n - 1) / 2] + latencies[n / 2]) / 2.0)
    }

    /// A reading for [`Ledger::keep`] or [`Ledger::rates`].
    pub(crate) fn sample(&self, at_ns: f64, cpu_ns: u64, totals: Totals) -> Sample {
        Sample {
            at_ns,
            cpu_ns,
            totals,
            completions: self.completions_ever,
            failures: self.failures_ever,
        }
    }

    /// Keeps a reading to compare later ones with.
    pub(crate) fn keep(&mut self, sample: Sample) {
        // One reading older than a second stays, so that a full second can always be compared.
        let old = |s: &Sample| sample.at_ns - s.at_ns >= SECOND_NS;
        while self.samples.get(1).is_some_and(old) || self.samples.len() >= MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The last second up to `now`, or the time since the start where that is shorter.
    pub(crate) fn rates(&self, now: &Sample, cores: f64) -> Rates {
        let full = |s: &&Sample| now.at_ns - s.at_ns >= SECOND_NS;
        let a_second_ago = self.samples.iter().rev().find(full);
        let start = Sample::default();
        let since = a_second_ago.or(self.samples.front()).unwrap_or(&start);
        let span_ns = now.at_ns - since.at_ns;
        if span_ns <= 0.0 {
            return Rates::default();
        }
        let busy_ns = now.totals.busy_core_ns - since.totals.busy_core_ns;
        let work_ns = now.totals.work_core_ns - since.totals.work_core_ns;
        let per_second = |count: u64| count as f64 / (span_ns * 1e-9);
        Rates {
            utilization: (busy_ns / (span_ns * cores)).clamp(0.0, 1.0),
            qps: per_second(now.completions - since.completions),
            eps: per_second(now.failures - since.failures),
            // Less than a microsecond of use says nothing.
            speed: (busy_ns > 1e3).then(|| work_ns / busy_ns),
            cpu_percent: a_second_ago
                .map(|_| now.cpu_ns.saturating_sub(since.cpu_ns) as f64 / span_ns * 100.0),
        }
    }

    fn leave(&mut self) {
        self.sequence += 1;
        self.active -= 1;
    }

    fn mean_of_last(&self, value: impl Fn(&Response) -> f64) -> Option<f64> {
        let last = self.responses.len().min(LAST);
        let sum: f64 = self.responses.iter().take(last).map(value).sum();
        (last > 0).then(|| sum / last as f64)
    }
}

#[cfg(test)]
mod tests;

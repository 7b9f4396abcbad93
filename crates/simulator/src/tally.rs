//! What a run came to: counts by outcome, latency and lateness, shares; the preview and the JSON.
//!
//! A short preview only: the statistics proper are computed from the rows. Percentiles here are
//! exact (nearest rank over all values), since a run is bounded by its schedule.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use schema::lateness;
use schema::quantile::quantile;

use crate::outcome::{Fate, Outcome};

/// Counts and values while rows come in.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Requests with a smaller sequence number are warm-up.
    warmup: usize,
    ok: u64,
    error: u64,
    timeout: u64,
    cancelled: u64,
    never_sent: u64,
    /// Reasons of everything that is not ok.
    reasons: BTreeMap<String, u64>,
    /// Of ok rows after the warm-up.
    latency_ns: Vec<u64>,
    /// Of rows after the warm-up that were sent.
    lateness_ns: Vec<u64>,
    /// Should have been sent and were not, warm-up included.
    missing: u64,
    /// Answers by container, after the warm-up.
    containers: BTreeMap<String, u64>,
    /// Answers with a header value that was left out because it cannot be true, and the first one.
    refused: u64,
    first_refused: Option<String>,
    last_sent_ns: u64,
    last_done_ns: u64,
}

/// Mean and quantiles of the ok rows after the warm-up, in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) mean_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

/// How actions of several calls ended (closed loop only).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Actions {
    pub(crate) calls_per_action: usize,
    pub(crate) complete: u64,
    pub(crate) good: u64,
    /// Share of the complete actions whose calls were all good; null when there is none.
    pub(crate) good_share: Option<f64>,
}

/// A run whose pace was set by its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct ClosedLoop {
    /// Calls in flight.
    pub(crate) slots: usize,
    pub(crate) callers: usize,
}

/// The summary of a run. Field names are read by scripts.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    pub(crate) run_id: String,
    /// The label given; null when the rows carry what the balancer said.
    pub(crate) strategy: Option<String>,
    pub(crate) workload_sha256: String,
    pub(crate) scheduled: u64,
    pub(crate) rows: u64,
    pub(crate) ok: u64,
    pub(crate) error: u64,
    pub(crate) timeout: u64,
    pub(crate) cancelled: u64,
    pub(crate) never_sent: u64,
    pub(crate) reasons: BTreeMap<String, u64>,
    /// Null when no row after the warm-up is ok.
    pub(crate) latency: Option<Latency>,
    pub(crate) shares: BTreeMap<String, f64>,
    /// Answers with a header value that cannot be true; it is missing in their rows.
    pub(crate) answers_with_refused_values: u64,
    #[serde(skip)]
    pub(crate) first_refused: Option<String>,
    pub(crate) lateness_p50_us: Option<f64>,
    pub(crate) lateness_p99_us: Option<f64>,
    pub(crate) lateness_max_us: Option<f64>,
    pub(crate) lag_bound_us: f64,
    /// `schema::lateness`. The testbed's mark of the same name is another one: a lateness p99 above the
    /// mean gap.
    pub(crate) generator_saturated: bool,
    pub(crate) interrupted: bool,
    /// `disk_full` or `write_error`; null when all rows are in the file.
    pub(crate) aborted: Option<&'static str>,
    pub(crate) elapsed_s: f64,
    /// Requests sent per second, from time 0 to the last send.
    pub(crate) achieved_rps: f64,
    pub(crate) started_unix_ns: u64,
    pub(crate) max_in_flight: usize,
    pub(crate) connections_opened: usize,
    /// Absent for an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) closed_loop: Option<ClosedLoop>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actions: Option<Actions>,
}

impl Tally {
    /// A tally whose first `warmup` requests are left out of latency and shares.
    pub(crate) fn new(warmup: usize) -> Self {
        Self {
            warmup,
            ..Self::default()
        }
    }

    /// Counts one row.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        match &outcome.fate {
            Fate::Ok => self.ok += 1,
            Fate::Error(_) => self.error += 1,
            Fate::Timeout => self.timeout += 1,
            Fate::Cancelled => self.cancelled += 1,
            Fate::NeverSent(_) => self.never_sent += 1,
        }
        if outcome.fate != Fate::Ok {
            let reason = outcome.fate.column();
            self.missing += u64::from(lateness::is_missing(&reason));
            *self.reasons.entry(reason).or_default() += 1;
        }
        self.last_sent_ns = self.last_sent_ns.max(outcome.sent_ns.unwrap_or(0));
        self.last_done_ns = self.last_done_ns.max(outcome.done_ns.unwrap_or(0));
        if let Some(value) = outcome.head.as_ref().and_then(|h| h.refused.as_ref()) {
            self.refused += 1;
            self.first_refused.get_or_insert_with(|| value.clone());
        }
        if outcome.seq < self.warmup {
            return;
        }
        self.lateness_ns.extend(outcome.lateness_ns());
        if outcome.fate == Fate::Ok {
            self.latency_ns.extend(outcome.latency_ns());
        }
        if let Some(container) = outcome.head.as_ref().and_then(|h| h.container.as_ref()) {
            *self.containers.entry(container.clone()).or_default() += 1;
        }
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.ok + self.not_ok()
    }

    /// Rows so far that are not ok.
    pub(crate) fn not_ok(&self) -> u64 {
        self.error + self.timeout + self.cancelled + self.never_sent
    }

    /// The summary; `rows_kept` when not all rows could be written.
    pub(crate) fn summarize(mut self, facts: Facts, rows_kept: Option<u64>) -> Summary {
        let sent = self.rows() - self.never_sent;
        self.lateness_ns.sort_unstable();
        self.latency_ns.sort_unstable();
        let lateness_ns = |q| quantile(&self.lateness_ns, q, |ns| ns as f64);
        let lateness_us = |q| lateness_ns(q).map(|ns| ns / 1e3);
        let answered: u64 = self.containers.values().sum();
        Summary {
            run_id: facts.run_id,
            strategy: facts.strategy,
            workload_sha256: facts.workload_sha256,
            scheduled: facts.scheduled,
            rows: rows_kept.unwrap_or_else(|| self.rows()),
            ok: self.ok,
            error: self.error,
            timeout: self.timeout,
            cancelled: self.cancelled,
            never_sent: self.never_sent,
            latency: latency(&self.latency_ns),
            shares: self
                .containers
                .iter()
                .map(|(name, n)| (name.clone(), *n as f64 / answered as f64))
                .collect(),
            lateness_p50_us: lateness_us(0.50),
            lateness_p99_us: lateness_us(0.99),
            lateness_max_us: lateness_us(1.0),
            lag_bound_us: facts.lag_bound_ns as f64 / 1e3,
            generator_saturated: lateness::is_late(
                lateness_ns(0.99),
                facts.lag_bound_ns as f64,
                self.missing,
            ),
            interrupted: facts.interrupted,
            aborted: facts.aborted,
            elapsed_s: self.last_done_ns.max(self.last_sent_ns) as f64 / 1e9,
            achieved_rps: if self.last_sent_ns == 0 {
                0.0
            } else {
                sent as f64 / (self.last_sent_ns as f64 / 1e9)
            },
            started_unix_ns: facts.started_unix_ns,
            max_in_flight: facts.max_in_flight,
            connections_opened: facts.connections_opened,
            closed_loop: facts.closed_loop,
            actions: facts.actions,
            reasons: self.reasons,
            answers_with_refused_values: self.refused,
            first_refused: self.first_refused,
        }
    }
}

/// What the rows do not say.
pub(crate) struct Facts {
    pub(crate) run_id: String,
    pub(crate) strategy: Option<String>,
    pub(crate) workload_sha256: String,
    pub(crate) scheduled: u64,
    pub(crate) lag_bound_ns: u64,
    pub(crate) interrupted: bool,
    pub(crate) aborted: Option<&'static str>,
    pub(crate) started_unix_ns: u64,
    pub(crate) max_in_flight: usize,
    pub(crate) connections_opened: usize,
    pub(crate) closed_loop: Option<ClosedLoop>,
    pub(crate) actions: Option<Actions>,
}

/// The value of rank ceil(q n) of sorted values.
fn rank(sorted: &[u64], q: f64) -> Option<u64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

fn latency(sorted_ns: &[u64]) -> Option<Latency> {
    let ms = |q| rank(sorted_ns, q).map(|ns| ns as f64 / 1e6);
    let sum_ms: f64 = sorted_ns.iter().map(|ns| *ns as f64 / 1e6).sum();
    Some(Latency {
        mean_ms: sum_ms / sorted_ns.len() as f64,
        p50_ms: ms(0.50)?,
        p95_ms: ms(0.95)?,
        p99_ms: ms(0.99)?,
        max_ms: ms(1.0)?,
    })
}

impl Summary {
    /// The preview: a few lines for people.
    pub(crate) fn preview(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_preview(&mut out);
        out
    }

    fn write_preview(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "{} rows of {} scheduled in {:.1} s ({:.1}/s sent): {} ok, {} error, {} timeout, {} cancelled, {} never sent",
            self.rows,
            self.scheduled,
            self.elapsed_s,
            self.achieved_rps,
            self.ok,
            self.error,
            self.timeout,
            self.cancelled,
            self.never_sent
        )?;
        if !self.reasons.is_empty() {
            let reasons: Vec<String> = self
                .reasons
                .iter()
                .map(|(reason, n)| format!("{reason} {n}"))
                .collect();
            writeln!(out, "not ok    {}", reasons.join(", "))?;
        }
        if let Some(ClosedLoop { slots, callers }) = self.closed_loop {
            writeln!(
                out,
                "closed    {slots} calls in flight, made by {callers} callers"
            )?;
        }
        if let Some(l) = &self.latency {
            let from = match self.closed_loop {
                Some(_) => "moment its slot freed",
                None => "due time",
            };
            writeln!(
                out,
                "latency   mean {:.2} ms, p50 {:.2}, p95 {:.2}, p99 {:.2}, max {:.2} (ok rows after the warm-up, from the {from})",
                l.mean_ms, l.p50_ms, l.p95_ms, l.p99_ms, l.max_ms
            )?;
        }
        if !self.shares.is_empty() {
            let shares: Vec<String> = self
                .shares
                .iter()
                .map(|(name, share)| format!("{name} {:.1} %", 100.0 * share))
                .collect();
            writeln!(out, "shares    {}", shares.join(", "))?;
        }
        if let (Some(p50), Some(p99), Some(max)) = (
            self.lateness_p50_us,
            self.lateness_p99_us,
            self.lateness_max_us,
        ) {
            writeln!(
                out,
                "lateness  p50 {:.3} ms, p99 {:.3}, max {:.3} (sent after due, after the warm-up; bound on p99 {:.3})",
                p50 / 1e3,
                p99 / 1e3,
                max / 1e3,
                self.lag_bound_us / 1e3
            )?;
        }
        if let Some(a) = &self.actions {
            writeln!(
                out,
                "actions   {} of {} good ({} calls each)",
                a.good, a.complete, a.calls_per_action
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

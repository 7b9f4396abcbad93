//! What workers say: taken in at the time it was true, older statements dropped.

use super::{Dispatcher, PoolError};
use crate::backends::Backend;
use crate::time::Time;
use crate::values::BackendId;
use schema::event::Candidate;
use schema::load_report::MAX_VALUE;
use schema::report::Report;

/// Most requests a worker can say it holds.
const MAX_ACTIVE: u32 = 1_000_000_000;

/// The moment a poll or probe left, with the counts of that moment. Taken when the request is sent,
/// given back with its answer: "own sends since" is then `sent - sent_before`, and requests sent while
/// the answer was under way are not lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollMark {
    pub(super) backend: BackendId,
    pub(super) sampled_at: Time,
    pub(super) sent_before: u64,
    pub(super) in_flight_before: u32,
}

impl PollMark {
    /// The mark that a logged report was taken with.
    pub(crate) fn of_logged(backend: BackendId, report: &Report) -> Self {
        Self {
            backend,
            sampled_at: Time::from_nanos(report.sampled_at_ns),
            sent_before: report.sent_before,
            in_flight_before: report.in_flight_before,
        }
    }

    /// When the request left.
    pub fn sampled_at(&self) -> Time {
        self.sampled_at
    }

    /// Whom it asks.
    pub fn backend(&self) -> BackendId {
        self.backend
    }
}

impl Dispatcher {
    /// The mark of a poll or probe that leaves now. `None` if no member has this id.
    pub fn mark_poll(&mut self, now: Time, id: BackendId) -> Option<PollMark> {
        let sampled_at = self.advance(now);
        let backend = self.member(id).ok()?;
        Some(PollMark {
            backend: id,
            sampled_at,
            sent_before: backend.sent,
            in_flight_before: backend.unanswered(),
        })
    }

    /// Takes a report in: with the mark of its request for polls and probes, without one for reports
    /// that are true on arrival. Gives back the report as stored, for the log; `None` if it was
    /// dropped because a newer one of the same source is known already.
    ///
    /// # Errors
    /// No member has this id (any more).
    pub fn report(
        &mut self,
        now: Time,
        id: BackendId,
        mark: Option<PollMark>,
        mut report: Report,
    ) -> Result<Option<&Report>, PoolError> {
        let now = self.advance(now);
        let backend = self.member(id)?;
        let mark = mark.filter(|m| m.backend == id).unwrap_or(PollMark {
            backend: id,
            sampled_at: now,
            sent_before: backend.sent,
            in_flight_before: backend.unanswered(),
        });
        report.sampled_at_ns = mark.sampled_at.min(now).as_nanos();
        report.sent_before = mark.sent_before;
        report.in_flight_before = mark.in_flight_before;
        sanitize(&mut report);
        let source = report.source;
        let slot = &mut backend.reports[source as usize];
        if slot
            .as_ref()
            .is_some_and(|stored| is_older(&report, stored))
        {
            return Ok(None);
        }
        match slot {
            Some(stored) => **stored = report.clone(),
            None => *slot = Some(Box::new(report.clone())),
        }
        self.strategy.on_stats(now, id, &report, &self.backends);
        Ok(self.backends.get(id).and_then(|b| b.report(source)))
    }

    /// Picks that the strategy in force made by own counts, because a report that it compares by was
    /// missing, too old or impossible.
    pub fn stand_ins(&self) -> u64 {
        self.strategy.stand_ins()
    }

    /// What is known of each member, in position order, for the decision record. `age_ns` and the
    /// rest are those of the newest answer of the statistics page.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> + '_ {
        self.backends.members().map(|b| self.candidate(b))
    }

    /// What is known of one backend.
    pub fn candidate(&self, backend: &Backend) -> Candidate {
        let stats = backend.newest_stats();
        let sampled_at = stats.map(|r| Time::from_nanos(r.sampled_at_ns));
        Candidate {
            id: backend.id.0,
            in_flight: backend.in_flight,
            active: stats.and_then(|r| r.active),
            mean_latency_50_ms: stats.and_then(|r| r.mean_latency_50_ms),
            age_ns: sampled_at.map(|t| self.now.since_ns(t)),
            sent_since: stats.map(|r| backend.sent.saturating_sub(r.sent_before)),
            predicted_ms: self.strategy.predicted_ms(backend.id),
        }
    }
}

/// Older than the stored one, or the same one again.
fn is_older(report: &Report, stored: &Report) -> bool {
    report.sampled_at_ns < stored.sampled_at_ns
        || (report.sampled_at_ns == stored.sampled_at_ns
            && report.sequence.is_some()
            && report.sequence == stored.sequence)
}

/// A number that cannot be true says nothing: one that is not finite, negative, or beyond all measure.
fn sanitize(report: &mut Report) {
    for value in [
        &mut report.mean_latency_50_ms,
        &mut report.service_time_mean_ms,
        &mut report.utilization,
        &mut report.application_utilization,
        &mut report.qps,
        &mut report.eps,
        &mut report.cpu_percent,
        &mut report.memory_used_mib,
        &mut report.rif_latency_ms,
        &mut report.speed,
    ] {
        *value = value.filter(|v| (0.0..=MAX_VALUE).contains(v));
    }
    report.active = report.active.filter(|n| *n <= MAX_ACTIVE);
    if let Some(jobs) = &mut report.work_left {
        jobs.retain(|job| (0.0..=MAX_VALUE).contains(&job.core_ms));
    }
}

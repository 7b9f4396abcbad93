//! What is known of the requests at one backend, with clocks that move with time.

use super::jobs::{Clocks, Discipline, Job, Jobs, Progress};
use super::told::{self, Finished};
use crate::backends::Backend;
use crate::measure::ms;
use crate::time::Time;
use schema::report::{Report, Source};

/// What of the workers' reports is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reports {
    /// Nothing.
    Off,
    /// How many requests they hold.
    Counts,
    /// The work left of each request they hold.
    Work,
}

/// How reports are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) reports: Reports,
    /// A report older than this counts as absent, ns.
    pub(crate) max_age_ns: u64,
}

/// The requests at one backend.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backlog {
    /// Own ones, and those of others whose work left was told.
    pub(crate) jobs: Jobs,
    /// Those of which only the number is known: of others, or from before this strategy came.
    unlisted: u32,
    finished: Finished,
    told_at: Option<Time>,
}

impl Backlog {
    /// Moves the clocks to `now` and counts afresh; how fast a job runs, in cores.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        backend: &Backend,
        discipline: Discipline,
        reading: Reading,
    ) -> f64 {
        let unlisted = f64::from(self.unlisted);
        let rate = self.jobs.advance(now, backend.cores, unlisted, discipline);
        let max_age_ns = reading.max_age_ns;
        if self.told_at.is_some_and(|t| now.since_ns(t) > max_age_ns) {
            self.told_at = None;
            self.jobs.forget_foreign(discipline);
        }
        // Own ones of before this strategy was switched to are nobody's jobs here.
        self.unlisted = (backend.in_flight as usize).saturating_sub(self.jobs.own()) as u32;
        match reading.reports {
            Reports::Off => {}
            Reports::Work if self.told_at.is_some() => {}
            Reports::Counts | Reports::Work => self.unlisted += counted(backend, now, max_age_ns),
        }
        rate
    }

    /// Takes what the worker tells; a job ran at `rate` cores since it was true. Returns how far the
    /// jobs came since it told before.
    pub(crate) fn tell(
        &mut self,
        now: Time,
        report: &Report,
        rate: f64,
        discipline: Discipline,
    ) -> Option<Progress> {
        let sampled_at = Time::from_nanos(report.sampled_at_ns);
        let work_left = report.work_left.as_ref()?;
        if self.told_at.is_some_and(|t| t > sampled_at) {
            return None;
        }
        let since_ms = ms(now.since_ns(sampled_at)) * rate;
        let ago = Clocks {
            nominal_ms: since_ms,
            effective_ms: since_ms * self.jobs.speed,
        };
        self.told_at = Some(sampled_at);
        let held = self.finished.without(work_left);
        Some(self.jobs.tell(ago, held, discipline))
    }

    /// An own job ended.
    pub(crate) fn forget(&mut self, job: &Job) {
        self.finished.note(job.request);
    }

    /// Those of which only the number is known.
    pub(crate) fn unlisted(&self) -> usize {
        self.unlisted as usize
    }

    /// All requests at the backend, as far as known.
    pub(crate) fn present(&self) -> f64 {
        self.jobs.len() as f64 + f64::from(self.unlisted)
    }
}

/// A request's id as jobs carry it: a number where reports name jobs, else nothing.
pub(crate) fn request_key(reading: Reading, request_id: &str) -> u64 {
    match reading.reports {
        Reports::Work => told::hash(request_id),
        _ => 0,
    }
}

/// Requests of other balancers at a backend, by the newest report if it is fresh.
fn counted(backend: &Backend, now: Time, max_age_ns: u64) -> u32 {
    [backend.newest_stats(), backend.report(Source::Piggyback)]
        .into_iter()
        .flatten()
        .filter(|r| r.active.is_some())
        .max_by_key(|r| r.sampled_at_ns)
        .filter(|r| now.since_ns(Time::from_nanos(r.sampled_at_ns)) <= max_age_ns)
        .and_then(|r| Some(r.active?.saturating_sub(r.in_flight_before)))
        .unwrap_or(0)
}

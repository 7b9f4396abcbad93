//! What is known of the requests at one backend, with clocks that move with time.

use super::jobs::{Discipline, Job, Jobs};
use super::told::{self, Told};
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
    /// Own ones.
    pub(crate) jobs: Jobs,
    /// Those of which only the number is known: of others, or from before this strategy came.
    unlisted: u32,
    /// Those of others whose work left was told.
    listed: u32,
    told: Told,
    told_at: Option<Time>,
}

impl Backlog {
    /// Moves the clocks to `now` and counts afresh; how fast a job ran meanwhile, in cores.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        backend: &Backend,
        discipline: Discipline,
        reading: Reading,
    ) -> f64 {
        let others = f64::from(self.unlisted + self.listed);
        let rate = self.jobs.advance(now, backend.cores, others, discipline);
        let max_age_ns = reading.max_age_ns;
        if self.told_at.is_some_and(|t| now.since_ns(t) > max_age_ns) {
            self.told_at = None;
        }
        // Own ones of before this strategy was switched to are nobody's jobs here.
        self.unlisted = (backend.in_flight as usize).saturating_sub(self.jobs.len()) as u32;
        self.listed = 0;
        match reading.reports {
            Reports::Off => {}
            Reports::Work if self.told_at.is_some() => self.listed = self.foreign().count() as u32,
            Reports::Counts | Reports::Work => self.unlisted += counted(backend, now, max_age_ns),
        }
        rate
    }

    /// Takes what the worker tells, true at `sampled_at`; a job ran at `rate` cores since.
    pub(crate) fn tell(&mut self, now: Time, report: &Report, rate: f64) {
        let sampled_at = Time::from_nanos(report.sampled_at_ns);
        if let Some(work_left) = &report.work_left
            && self.told_at.is_none_or(|t| t <= sampled_at)
        {
            let since_ms = ms(now.since_ns(sampled_at)) * rate;
            self.told.take(work_left, self.jobs.nominal_ms() - since_ms);
            self.told_at = Some(sampled_at);
        }
    }

    /// An own job ended.
    pub(crate) fn forget(&mut self, job: &Job) {
        self.told.finish(job.request);
    }

    /// Work left of an own job as the worker told it, core-ms; may be below zero.
    pub(crate) fn told_ms(&self, job: &Job) -> Option<f64> {
        self.told_at?;
        self.told.left_ms(job.request, self.jobs.nominal_ms())
    }

    /// Work left of the others' jobs that were told, core-ms.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = f64> + Clone {
        let told = self.told_at.map(|_| &self.told).into_iter();
        told.flat_map(|t| t.unfinished(self.jobs.nominal_ms()))
            .filter(|(request, _)| self.jobs.iter().all(|j| j.request != *request))
            .map(|(_, left_ms)| left_ms)
    }

    /// Those of which only the number is known.
    pub(crate) fn unlisted(&self) -> usize {
        self.unlisted as usize
    }

    /// All requests at the backend, as far as known.
    pub(crate) fn present(&self) -> f64 {
        self.jobs.len() as f64 + f64::from(self.unlisted + self.listed)
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

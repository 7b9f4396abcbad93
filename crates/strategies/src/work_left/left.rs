//! What is left of a request, as far as a balancer knows.

use super::backlog::Backlog;
use super::demand::Demand;
use super::jobs::{Discipline, Job};
use super::possible::draw_left_ms;
use crate::strategy::Rng;

/// Part of the mean need that is left, on average, of a job in a queue about which nothing is known.
const UNKNOWN_LEFT: f64 = 0.7;
/// A job whose work left was told is never counted below this part of its class's mean.
const TOLD_FLOOR: f64 = 0.01;

/// What is known of the needs within a class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// Mean need of a request of any class, core-ms.
    pub(crate) typical_ms: f64,
    /// Log-standard deviation of the needs within a class.
    pub(crate) spread: f64,
}

/// What is left of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Left {
    /// As told, or the mean need less what was attained, core-ms; below zero: it should be done.
    pub(crate) expected_ms: f64,
    /// It counts as at least this.
    pub(crate) floor_ms: f64,
    /// What its class needs in the mean and what it attained, where more than the mean is unknown.
    pub(crate) drawn: Option<(f64, f64)>,
}

impl Left {
    /// What it counts as, core-ms.
    pub(crate) fn ms(self) -> f64 {
        self.expected_ms.max(self.floor_ms)
    }

    /// What may be left of it, core-ms: one draw.
    pub(crate) fn draw_ms(self, spread: f64, rng: &mut Rng) -> f64 {
        match self.drawn {
            Some((mean_ms, attained_ms)) => {
                draw_left_ms(mean_ms, spread, attained_ms, self.ms(), rng)
            }
            None => self.ms(),
        }
    }
}

/// The requests at a backend: the running ones, then those of which only the number is known, then
/// those that wait.
pub(crate) fn lefts<'a>(
    backlog: &'a Backlog,
    discipline: Discipline,
    demand: &'a Demand,
    needs: Needs,
) -> impl Iterator<Item = Left> + Clone + 'a {
    let jobs = &backlog.jobs;
    let left = move |job: &Job| {
        let mean_ms = demand.of(job.class).unwrap_or(needs.typical_ms);
        match jobs.told_ms(job) {
            Some(expected_ms) => Left {
                expected_ms,
                floor_ms: TOLD_FLOOR * mean_ms,
                drawn: None,
            },
            None => {
                let attained_ms = jobs.attained(job).effective_ms;
                Left {
                    expected_ms: mean_ms - attained_ms,
                    floor_ms: needs.spread * mean_ms,
                    drawn: Some((mean_ms, attained_ms)),
                }
            }
        }
    };
    let unlisted_ms = match discipline {
        _ if backlog.unlisted() == 0 => 0.0,
        Discipline::Sharing => demand.left_of_one_found(),
        Discipline::Queue(_) => UNKNOWN_LEFT * needs.typical_ms,
    };
    let unlisted = Left {
        expected_ms: unlisted_ms,
        floor_ms: 0.0,
        drawn: None,
    };
    let running = jobs.iter().filter(move |j| jobs.runs(j)).map(left);
    let waiting = jobs.iter().filter(move |j| !jobs.runs(j)).map(left);
    running
        .chain(std::iter::repeat_n(unlisted, backlog.unlisted()))
        .chain(waiting)
}

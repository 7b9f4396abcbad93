//! The jobs a balancer placed at one backend, and how much of each is done.
//!
//! Two clocks count core-ms a running job attained: the *nominal* one as if the backend ran at full
//! speed, the *effective* one at the speed it is believed to have. A job's attained work is the
//! clock minus the clock at its start.

use crate::measure::ms;
use crate::time::Time;

/// How a backend serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// All at once, at most one core each.
    Sharing,
    /// This many at once, in order.
    Queue(usize),
}

/// One job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Job {
    /// Number of its dispatch.
    pub(crate) dispatch: u64,
    /// Its request's id, hashed.
    pub(crate) request: u64,
    /// Its class.
    pub(crate) class: u32,
    /// What it needs, core-ms, for those who know.
    pub(crate) size_ms: f64,
    /// The clocks when it started; `None` while it waits.
    started: Option<Clocks>,
    /// The newest that its worker told of it.
    told: Option<Told>,
}

/// What a worker told of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Told {
    /// Core-ms left.
    left_ms: f64,
    /// What the job had attained then.
    attained: Clocks,
}

/// How far the running jobs came between two statements of their worker, in sum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Progress {
    /// Core-ms by the worker's own words.
    pub(crate) told_ms: f64,
    /// Core-ms by the nominal clock.
    pub(crate) nominal_ms: f64,
    /// Jobs.
    pub(crate) jobs: u32,
}

/// Core-ms attained by a job that runs all along.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Clocks {
    /// At nominal speed.
    pub(crate) nominal_ms: f64,
    /// At the believed speed.
    pub(crate) effective_ms: f64,
}

/// The jobs of one backend in send order.
#[derive(Debug, Clone)]
pub(crate) struct Jobs {
    jobs: Vec<Job>,
    clocks: Clocks,
    at: Time,
    /// The believed speed, 1 = nominal.
    pub(crate) speed: f64,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            jobs: Vec::new(),
            clocks: Clocks::default(),
            at: Time::ZERO,
            speed: 1.0,
        }
    }
}

impl Jobs {
    /// Lets time pass; `others` are at the backend as well. Returns how fast a job ran meanwhile, in
    /// cores at nominal speed.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        cores: f64,
        others: f64,
        discipline: Discipline,
    ) -> f64 {
        let dt_ms = ms(now.since_ns(self.at));
        self.at = now;
        let n = self.jobs.len() as f64 + others;
        let rate = match discipline {
            Discipline::Queue(servers) => cores / servers as f64,
            Discipline::Sharing if n > cores => cores / n,
            Discipline::Sharing => 1.0,
        };
        // A lone job of a backend with less than a core has only that much.
        let rate = rate.min(cores);
        if n > 0.0 {
            self.clocks.nominal_ms += dt_ms * rate;
            self.clocks.effective_ms += dt_ms * rate * self.speed;
        }
        rate
    }

    /// Adds a job; it starts at once if there is a server for it.
    pub(crate) fn push(
        &mut self,
        dispatch: u64,
        request: u64,
        class: u32,
        size_ms: f64,
        discipline: Discipline,
    ) {
        self.jobs.push(Job {
            dispatch,
            request,
            class,
            size_ms,
            started: None,
            told: None,
        });
        self.start(discipline);
    }

    /// Takes a job out and returns it with what it attained; the next in line starts.
    pub(crate) fn remove(
        &mut self,
        dispatch: u64,
        discipline: Discipline,
    ) -> Option<(Job, Clocks)> {
        let at = self.jobs.iter().position(|j| j.dispatch == dispatch)?;
        let job = self.jobs.remove(at);
        self.start(discipline);
        Some((job, self.attained(&job)))
    }

    /// Starts whoever has a server and does not run yet.
    pub(crate) fn start(&mut self, discipline: Discipline) {
        let running = match discipline {
            Discipline::Sharing => self.jobs.len(),
            Discipline::Queue(servers) => servers.min(self.jobs.len()),
        };
        let clocks = self.clocks;
        // Whoever runs stands before whoever waits: only the tail of the running can be new.
        for job in self.jobs[..running].iter_mut().rev() {
            if job.started.is_some() {
                break;
            }
            job.started = Some(clocks);
        }
    }

    /// What a job attained so far.
    pub(crate) fn attained(&self, job: &Job) -> Clocks {
        job.started.map_or(Clocks::default(), |from| Clocks {
            nominal_ms: self.clocks.nominal_ms - from.nominal_ms,
            effective_ms: self.clocks.effective_ms - from.effective_ms,
        })
    }

    /// Takes what the worker tells of each job, `ago` on the clocks: `left_ms` by request. Returns
    /// how far those came that ran since the statement before.
    pub(crate) fn tell(&mut self, ago: Clocks, left_ms: impl Fn(u64) -> Option<f64>) -> Progress {
        let mut sum = Progress::default();
        for i in 0..self.jobs.len() {
            let Some(left_ms) = left_ms(self.jobs[i].request) else {
                continue;
            };
            let now = self.attained(&self.jobs[i]);
            let attained = Clocks {
                nominal_ms: (now.nominal_ms - ago.nominal_ms).max(0.0),
                effective_ms: (now.effective_ms - ago.effective_ms).max(0.0),
            };
            if let Some(before) = self.jobs[i].told.replace(Told { left_ms, attained })
                && attained.nominal_ms > before.attained.nominal_ms
            {
                sum.told_ms += before.left_ms - left_ms;
                sum.nominal_ms += attained.nominal_ms - before.attained.nominal_ms;
                sum.jobs += 1;
            }
        }
        sum
    }

    /// Core-ms left of a job by what its worker told of it; below zero: it should be done.
    pub(crate) fn told_ms(&self, job: &Job) -> Option<f64> {
        let told = job.told?;
        Some(told.left_ms - (self.attained(job).effective_ms - told.attained.effective_ms))
    }

    /// In send order; with a queue the running ones come first.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Job> + Clone {
        self.jobs.iter()
    }

    /// Whether it runs.
    pub(crate) fn runs(&self, job: &Job) -> bool {
        job.started.is_some()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// The clocks.
    pub(crate) fn clocks(&self) -> Clocks {
        self.clocks
    }
}

#[cfg(test)]
mod tests {
    use super::{Clocks, Discipline, Jobs, Progress};
    use crate::time::Time;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn sharing_halves_what_two_attain_on_one_core() {
        let mut jobs = Jobs::default();
        let ps = Discipline::Sharing;
        jobs.advance(at(0), 1.0, 0.0, ps);
        jobs.push(0, 0, 0, 0.0, ps);
        jobs.advance(at(10), 1.0, 0.0, ps);
        jobs.push(1, 0, 0, 0.0, ps);
        jobs.advance(at(30), 1.0, 0.0, ps);
        let attained = |jobs: &mut Jobs, d| jobs.remove(d, ps).unwrap().1.nominal_ms;
        assert_eq!(attained(&mut jobs, 0), 20.0);
        assert_eq!(attained(&mut jobs, 1), 10.0);
        assert!(jobs.remove(1, ps).is_none());
    }

    #[test]
    fn a_queue_starts_the_next_when_one_leaves() {
        let mut jobs = Jobs::default();
        let fcfs = Discipline::Queue(2);
        for dispatch in 0..3 {
            jobs.push(dispatch, 0, 0, 0.0, fcfs);
        }
        jobs.advance(at(10), 2.0, 0.0, fcfs);
        assert_eq!(jobs.iter().filter(|j| jobs.runs(j)).count(), 2);
        jobs.remove(0, fcfs);
        jobs.advance(at(25), 2.0, 0.0, fcfs);
        let (_, third) = jobs.remove(2, fcfs).unwrap();
        assert_eq!(third.nominal_ms, 15.0);
    }

    #[test]
    fn a_told_job_loses_work_only_while_it_runs() {
        let mut jobs = Jobs::default();
        let fcfs = Discipline::Queue(1);
        for dispatch in 0..2 {
            jobs.push(dispatch, dispatch, 0, 0.0, fcfs);
        }
        jobs.advance(at(10), 1.0, 0.0, fcfs);
        // It was true 4 ms ago: 50 were left of the first, the second waits with 30.
        let ago = Clocks {
            nominal_ms: 4.0,
            effective_ms: 4.0,
        };
        jobs.tell(ago, |request| [Some(50.0), Some(30.0)][request as usize]);
        let told = |jobs: &Jobs| jobs.iter().map(|j| jobs.told_ms(j)).collect::<Vec<_>>();
        assert_eq!(told(&jobs), [Some(46.0), Some(30.0)]);
        jobs.advance(at(30), 1.0, 0.0, fcfs);
        assert_eq!(told(&jobs), [Some(26.0), Some(30.0)]);
        jobs.remove(0, fcfs);
        jobs.advance(at(35), 1.0, 0.0, fcfs);
        assert_eq!(told(&jobs), [Some(25.0)]);
    }

    #[test]
    fn two_statements_tell_how_fast_it_went_between_them() {
        let mut jobs = Jobs::default();
        let ps = Discipline::Sharing;
        jobs.push(0, 0, 0, 0.0, ps);
        jobs.push(1, 1, 0, 0.0, ps);
        jobs.speed = 0.5;
        jobs.advance(at(10), 2.0, 0.0, ps);
        let first = jobs.tell(Clocks::default(), |r| [Some(60.0), None][r as usize]);
        assert_eq!(first.jobs, 0);
        jobs.advance(at(30), 2.0, 0.0, ps);
        let then = jobs.tell(Clocks::default(), |r| [Some(55.0), Some(9.0)][r as usize]);
        let want = Progress {
            told_ms: 5.0,
            nominal_ms: 20.0,
            jobs: 1,
        };
        assert_eq!(then, want);
        // A believed half speed takes half of what passes.
        jobs.advance(at(34), 2.0, 0.0, ps);
        assert_eq!(jobs.told_ms(&jobs.jobs[0]), Some(53.0));
    }

    #[test]
    fn half_a_core_gives_half() {
        let mut jobs = Jobs::default();
        jobs.push(0, 0, 0, 0.0, Discipline::Sharing);
        jobs.advance(at(10), 0.5, 0.0, Discipline::Sharing);
        assert_eq!(jobs.clocks().nominal_ms, 5.0);
    }
}

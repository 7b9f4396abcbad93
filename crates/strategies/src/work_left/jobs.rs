//! The jobs at one backend, as far as a balancer knows, and how much of each is done.
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

impl Discipline {
    /// How many of `n` jobs run.
    pub(crate) fn running(self, n: usize) -> usize {
        match self {
            Self::Sharing => n,
            Self::Queue(servers) => servers.min(n),
        }
    }

    /// How fast each of them runs beside `n` in all, in cores, on `cores` at nominal speed.
    pub(crate) fn rate(self, cores: f64, n: f64) -> f64 {
        let rate = match self {
            Self::Queue(servers) => cores / servers as f64,
            Self::Sharing if n > cores => cores / n,
            Self::Sharing => 1.0,
        };
        // A lone job of a backend with less than a core has only that much.
        rate.min(cores)
    }
}

/// One job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Job {
    /// Number of its dispatch; `None`: another balancer's, of which its worker told.
    pub(crate) dispatch: Option<u64>,
    /// Its request's id, hashed.
    pub(crate) request: u64,
    /// Its class; of no meaning for another balancer's.
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
    /// The clocks then.
    at: Clocks,
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

impl Clocks {
    /// What passed since they stood at `from`.
    fn since(self, from: Self) -> Self {
        Self {
            nominal_ms: self.nominal_ms - from.nominal_ms,
            effective_ms: self.effective_ms - from.effective_ms,
        }
    }
}

/// The jobs of one backend in the order in which they came: own ones, and those of other balancers
/// of which the worker told.
#[derive(Debug, Clone)]
pub(crate) struct Jobs {
    jobs: Vec<Job>,
    /// Empty, kept for its room.
    spare: Vec<Job>,
    /// How many are other balancers'.
    foreign: usize,
    clocks: Clocks,
    at: Time,
    /// The believed speed, 1 = nominal.
    pub(crate) speed: f64,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            jobs: Vec::new(),
            spare: Vec::new(),
            foreign: 0,
            clocks: Clocks::default(),
            at: Time::ZERO,
            speed: 1.0,
        }
    }
}

impl Jobs {
    /// Lets time pass; `unlisted` more are at the backend. Returns how fast a job runs, in cores at
    /// nominal speed.
    ///
    /// Who answers for another balancer's job is not heard of: it leaves when its work is done.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        cores: f64,
        unlisted: f64,
        discipline: Discipline,
    ) -> f64 {
        let mut dt_ms = ms(now.since_ns(self.at));
        self.at = now;
        if self.foreign > 0 {
            dt_ms = self.pass_ends(dt_ms, cores, unlisted, discipline);
        }
        let rate = self.rate(cores, unlisted, discipline);
        if self.jobs.len() as f64 + unlisted > 0.0 {
            self.pass(dt_ms, rate);
        }
        rate
    }

    fn pass(&mut self, dt_ms: f64, rate: f64) {
        self.clocks.nominal_ms += dt_ms * rate;
        self.clocks.effective_ms += dt_ms * rate * self.speed;
    }

    /// Lets time pass up to the last end of another balancer's job within it; what is left of it.
    #[inline(never)]
    fn pass_ends(
        &mut self,
        mut dt_ms: f64,
        cores: f64,
        unlisted: f64,
        discipline: Discipline,
    ) -> f64 {
        while let Some((at, left_ms)) = self.first_foreign_end() {
            let rate = self.rate(cores, unlisted, discipline);
            if left_ms > dt_ms * rate * self.speed {
                break;
            }
            let passes_ms = (left_ms / (rate * self.speed)).max(0.0);
            self.pass(passes_ms, rate);
            dt_ms = (dt_ms - passes_ms).max(0.0);
            self.jobs.remove(at);
            self.foreign -= 1;
            self.start(discipline);
        }
        dt_ms
    }

    /// How fast a job runs, in cores at nominal speed; `unlisted` more are there.
    fn rate(&self, cores: f64, unlisted: f64, discipline: Discipline) -> f64 {
        discipline.rate(cores, self.jobs.len() as f64 + unlisted)
    }

    /// Which of the others' running jobs ends first, and the core-ms left of it.
    fn first_foreign_end(&self) -> Option<(usize, f64)> {
        if self.foreign == 0 {
            return None;
        }
        let running = self
            .jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| self.runs(job));
        running
            .filter(|(_, job)| job.dispatch.is_none())
            .filter_map(|(at, job)| Some((at, self.told_ms(job)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
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
            dispatch: Some(dispatch),
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
        let at = self
            .jobs
            .iter()
            .position(|j| j.dispatch == Some(dispatch))?;
        let job = self.jobs.remove(at);
        self.start(discipline);
        Some((job, self.attained(&job)))
    }

    /// Starts whoever has a server and does not run yet.
    pub(crate) fn start(&mut self, discipline: Discipline) {
        let running = discipline.running(self.jobs.len());
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
        job.started
            .map_or(Clocks::default(), |from| self.clocks.since(from))
    }

    /// Takes what the worker told, `ago` on the clocks: request and core-ms left of each job it held,
    /// in the order in which it serves them. Own jobs that it did not hold came later. Returns how far
    /// those came that ran when it told before and still do.
    pub(crate) fn tell(
        &mut self,
        ago: Clocks,
        held: impl Iterator<Item = (u64, f64)>,
        discipline: Discipline,
    ) -> Progress {
        let at = self.clocks.since(ago);
        let mut sum = Progress::default();
        let mut known = std::mem::replace(&mut self.jobs, std::mem::take(&mut self.spare));
        for (request, left_ms) in held {
            let mut job = match known.iter().position(|j| j.request == request) {
                Some(at) => known.remove(at),
                None => Job {
                    dispatch: None,
                    request,
                    class: u32::MAX,
                    size_ms: 0.0,
                    started: None,
                    told: None,
                },
            };
            let before = job.told.replace(Told { left_ms, at });
            if let (Some(before), Some(started)) = (before, job.started)
                && started.nominal_ms <= before.at.nominal_ms
                && at.nominal_ms > before.at.nominal_ms
                && left_ms > 0.0
            {
                sum.told_ms += before.left_ms - left_ms;
                sum.nominal_ms += at.nominal_ms - before.at.nominal_ms;
                sum.jobs += 1;
            }
            self.jobs.push(job);
        }
        known.retain(|job| job.dispatch.is_some());
        self.jobs.append(&mut known);
        self.spare = known;
        self.foreign = self.jobs.iter().filter(|j| j.dispatch.is_none()).count();
        // Who runs is as the worker says, whatever was believed.
        let running = discipline.running(self.jobs.len());
        for job in &mut self.jobs[..running] {
            job.started.get_or_insert(at);
        }
        for job in &mut self.jobs[running..] {
            // Told before and now no more, it is done and its answer on the way.
            if job.told.is_none_or(|told| told.at == at) {
                job.started = None;
            }
        }
        sum
    }

    /// What the worker told last is too old to say who else is there.
    pub(crate) fn forget_foreign(&mut self, discipline: Discipline) {
        self.jobs.retain(|job| job.dispatch.is_some());
        self.foreign = 0;
        self.start(discipline);
    }

    /// Core-ms left of a job by what its worker told of it; below zero: it should be done.
    pub(crate) fn told_ms(&self, job: &Job) -> Option<f64> {
        let told = job.told?;
        let Some(started) = job.started else {
            return Some(told.left_ms);
        };
        let ran_from = told.at.effective_ms.max(started.effective_ms);
        Some(told.left_ms - (self.clocks.effective_ms - ran_from))
    }

    /// In the order in which they came; with a queue the running ones come first.
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

    /// How many are own ones.
    pub(crate) fn own(&self) -> usize {
        self.jobs.len() - self.foreign
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
        jobs.tell(ago, [(0, 50.0), (1, 30.0)].into_iter(), fcfs);
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
        let first = jobs.tell(Clocks::default(), [(0, 60.0)].into_iter(), ps);
        assert_eq!(first.jobs, 0);
        jobs.advance(at(30), 2.0, 0.0, ps);
        let held = [(0, 55.0), (1, 9.0)].into_iter();
        let want = Progress {
            told_ms: 5.0,
            nominal_ms: 20.0,
            jobs: 1,
        };
        assert_eq!(jobs.tell(Clocks::default(), held, ps), want);
        // A believed half speed takes half of what passes.
        jobs.advance(at(34), 2.0, 0.0, ps);
        assert_eq!(jobs.told_ms(&jobs.jobs[0]), Some(53.0));
    }

    #[test]
    fn behind_anothers_job_an_own_one_waits_and_shows_no_slowness() {
        let mut jobs = Jobs::default();
        let fcfs = Discipline::Queue(1);
        jobs.push(0, 7, 0, 0.0, fcfs);
        jobs.advance(at(10), 1.0, 0.0, fcfs);
        // What seemed to run for 10 ms waits behind 40.
        let held = |first| [(9, first), (7, 30.0)].into_iter();
        jobs.tell(Clocks::default(), held(40.0), fcfs);
        assert_eq!((jobs.len(), jobs.own()), (2, 1));
        assert_eq!(jobs.told_ms(&jobs.jobs[1]), Some(30.0));
        jobs.advance(at(30), 1.0, 0.0, fcfs);
        let way = jobs.tell(Clocks::default(), held(20.0), fcfs);
        let want = Progress {
            told_ms: 20.0,
            nominal_ms: 20.0,
            jobs: 1,
        };
        assert_eq!(way, want);
        // The other one ends at 50, whoever is told of it.
        jobs.advance(at(65), 1.0, 0.0, fcfs);
        assert_eq!((jobs.len(), jobs.told_ms(&jobs.jobs[0])), (1, Some(15.0)));
        jobs.advance(at(80), 1.0, 0.0, fcfs);
        let (_, attained) = jobs.remove(0, fcfs).unwrap();
        assert_eq!(attained.nominal_ms, 30.0);
    }

    #[test]
    fn whom_the_worker_does_not_name_came_later_or_is_done() {
        let mut jobs = Jobs::default();
        let fcfs = Discipline::Queue(2);
        for dispatch in 0..3 {
            jobs.push(dispatch, dispatch, 0, 0.0, fcfs);
        }
        jobs.tell(Clocks::default(), [(0, 5.0), (1, 50.0)].into_iter(), fcfs);
        jobs.advance(at(10), 2.0, 0.0, fcfs);
        // The first is done and its answer on the way, the third was not there yet.
        let held = [(8, 60.0), (1, 40.0), (9, 30.0)].into_iter();
        jobs.tell(Clocks::default(), held, fcfs);
        let runs: Vec<_> = jobs.iter().map(|j| (j.request, jobs.runs(j))).collect();
        assert_eq!(
            runs,
            [(8, true), (1, true), (9, false), (0, true), (2, false)]
        );
        assert_eq!(jobs.remove(0, fcfs).unwrap().1.nominal_ms, 10.0);
        jobs.forget_foreign(fcfs);
        let runs: Vec<_> = jobs.iter().map(|j| (j.request, jobs.runs(j))).collect();
        assert_eq!(runs, [(1, true), (2, true)]);
    }

    #[test]
    fn others_told_jobs_slow_a_shared_backend_until_they_are_done() {
        let mut jobs = Jobs::default();
        let ps = Discipline::Sharing;
        jobs.push(0, 0, 0, 0.0, ps);
        jobs.tell(Clocks::default(), [(9, 10.0), (0, 50.0)].into_iter(), ps);
        jobs.advance(at(30), 1.0, 0.0, ps);
        // Half of the first 20 ms and all of the other 10.
        assert_eq!((jobs.len(), jobs.told_ms(&jobs.jobs[0])), (1, Some(30.0)));
    }

    #[test]
    fn half_a_core_gives_half() {
        let mut jobs = Jobs::default();
        jobs.push(0, 0, 0, 0.0, Discipline::Sharing);
        jobs.advance(at(10), 0.5, 0.0, Discipline::Sharing);
        assert_eq!(jobs.clocks.nominal_ms, 5.0);
    }
}

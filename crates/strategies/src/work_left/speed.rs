//! How fast a backend runs, relative to its nominal speed, told from how long its jobs take.

use super::company::Company;
use super::jobs::Progress;
use crate::time::Time;

/// Core-ms between two statements of a worker that count as much as all before them.
const MEASURED_MS: f64 = 30.0;
/// Completions of a class before its samples say anything about speed.
const KNOWN_FROM: u64 = 10;
/// Bounds of an estimate.
const LEAST: f64 = 0.05;
const MOST: f64 = 2.0;
/// Above this logarithm, of 0.8, an estimate counts as full speed.
const DEAD_BAND: f64 = -0.22314355131420976;
/// Largest gain of the mean of log speeds, and how many log-standard deviations above its mean a
/// job may lie before it is overdue. With quicker alarms large jobs are taken for slow backends,
/// which costs more while speeds are steady than it saves when they drift.
const MOST_GAIN: f64 = 0.25;
const LARGE: f64 = 3.5;
/// Speeds of the filter, powers of the root of one half.
const GRID: usize = 7;

/// How the speed is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Not at all: always nominal.
    Off,
    /// A time-weighted mean of log speeds.
    Ewma,
    /// A posterior over a grid of speeds.
    Filter,
    /// The worker says it.
    Reported,
}

/// What one job tells: its class's mean need, the log-spread within classes, and what it attained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Mean need of its class, core-ms.
    pub(crate) mean_ms: f64,
    /// Completions of its class before this one.
    pub(crate) count: u64,
    /// Log-standard deviation within classes.
    pub(crate) spread: f64,
    /// Attained at nominal speed, core-ms.
    pub(crate) attained_ms: f64,
}

/// The estimate of one backend.
#[derive(Debug, Clone)]
pub(crate) struct Speed {
    log: f64,
    posterior: [f64; GRID],
    sampled: bool,
    /// It was measured, which tells more than how long jobs take.
    measured_at: Option<Time>,
    reported: f64,
    at: Time,
    company: Company,
}

impl Default for Speed {
    fn default() -> Self {
        let mut posterior = [0.02; GRID];
        posterior[0] = 0.88;
        Self {
            log: 0.0,
            posterior,
            sampled: false,
            measured_at: None,
            reported: 1.0,
            at: Time::ZERO,
            company: Company::default(),
        }
    }
}

fn grid(k: usize) -> f64 {
    libm::pow(2.0, -(k as f64) / 2.0)
}

/// Probability that a log-normal with mean 1 and log-standard deviation `s` exceeds `y`.
fn exceeds(y: f64, s: f64) -> f64 {
    0.5 * libm::erfc((libm::log(y) + s * s / 2.0) / (s * std::f64::consts::SQRT_2))
}

impl Speed {
    /// What the worker says of itself.
    pub(crate) fn report(&mut self, speed: f64) {
        if speed.is_finite() && speed > 0.0 {
            self.reported = speed.clamp(LEAST, MOST);
        }
    }

    /// How many requests the backend says it holds, and how many of them are not own ones.
    ///
    /// Beside others' requests, of which the clocks know nothing, jobs take long at full speed too:
    /// a balancer that called this slowness would drive its jobs from one backend to the next.
    pub(crate) fn note_company(&mut self, active: u32, others: u32) {
        self.company.note(active, others);
    }

    /// Takes a completion.
    pub(crate) fn learn(&mut self, rule: Rule, now: Time, decay_ns: f64, job: Sample) {
        if job.attained_ms <= 0.0 || self.is_measured(now, decay_ns) {
            return;
        }
        let log = libm::log(job.mean_ms / job.attained_ms);
        match rule {
            Rule::Off | Rule::Reported => {}
            Rule::Ewma if job.count <= KNOWN_FROM => {}
            Rule::Ewma => {
                let precision = (0.1 / job.spread) * (0.1 / job.spread);
                let gain = (2.0 * precision / (1.0 + precision)).clamp(0.02, MOST_GAIN);
                self.approach(now, decay_ns, log - job.spread * job.spread / 2.0, gain);
            }
            Rule::Filter => self.weigh(now, decay_ns, log.min(0.0), job.spread),
        }
    }

    /// Takes what the worker's own words say of the way its jobs came since it told before.
    pub(crate) fn measure(&mut self, rule: Rule, now: Time, decay_ns: f64, way: Progress) {
        if way.jobs == 0 {
            return;
        }
        let log = libm::log((way.told_ms / way.nominal_ms).clamp(LEAST, MOST));
        let each_ms = way.nominal_ms / f64::from(way.jobs);
        match rule {
            Rule::Off | Rule::Reported => return,
            Rule::Ewma => self.approach(now, decay_ns, log, each_ms / (each_ms + MEASURED_MS)),
            Rule::Filter => self.weigh(now, decay_ns, log.min(0.0), 0.0),
        }
        self.measured_at = Some(now);
    }

    /// Whether it is measured in core-ms that its worker told, and so is absolute. What is told from how
    /// long jobs take holds only against other backends: nobody knows what the jobs need.
    pub(crate) fn is_measured(&self, now: Time, decay_ns: f64) -> bool {
        self.measured_at
            .is_some_and(|at| (now.since_ns(at) as f64) < decay_ns)
    }

    /// Moves the mean of log speeds.
    fn approach(&mut self, now: Time, decay_ns: f64, log: f64, gain: f64) {
        let projected = self.projected_log(now, decay_ns);
        self.log = projected + gain * (log - projected);
        self.at = now;
    }

    /// Moves the posterior.
    fn weigh(&mut self, now: Time, decay_ns: f64, log: f64, spread: f64) {
        self.posterior = self.projected(now, decay_ns);
        self.sampled = true;
        self.at = now;
        let variance = spread * spread + 0.15 * 0.15;
        for (k, p) in self.posterior.iter_mut().enumerate() {
            let off = log - libm::log(grid(k));
            *p *= libm::exp(-off * off / (2.0 * variance)).max(1e-4);
        }
        normalize(&mut self.posterior, 1e-5);
    }

    /// The speed now, not yet relative to the fastest backend; `running` are the jobs that run.
    pub(crate) fn estimate(
        &self,
        rule: Rule,
        now: Time,
        decay_ns: f64,
        running: impl Iterator<Item = Sample>,
    ) -> f64 {
        match rule {
            Rule::Off => 1.0,
            Rule::Reported => self.reported,
            Rule::Ewma | Rule::Filter if self.company.is_there() => 1.0,
            Rule::Ewma => {
                let speed = self.smoothed(now, decay_ns);
                // A job that runs for longer than even a large one needs shows a slow-down before it ends.
                let mut overdue: f64 = 1.0;
                for job in running {
                    if job.attained_ms > job.mean_ms {
                        let largest = libm::exp(LARGE * job.spread) * job.mean_ms;
                        overdue = overdue.min(largest / (speed * job.attained_ms));
                    }
                }
                speed * overdue.max(0.1)
            }
            // Without a completion it counts as nominal, else it would never get one.
            Rule::Filter if !self.sampled => 1.0,
            Rule::Filter => {
                let mut p = self.projected(now, decay_ns);
                for job in running {
                    let y = job.attained_ms / job.mean_ms;
                    if y > 0.8 {
                        for (k, p) in p.iter_mut().enumerate() {
                            *p *= exceeds(grid(k) * y, job.spread).max(1e-6);
                        }
                    }
                }
                normalize(&mut p, 0.0);
                let slowness: f64 = p.iter().enumerate().map(|(k, p)| p / grid(k)).sum();
                1.0 / slowness
            }
        }
    }

    /// The mean of log speeds as a speed.
    fn smoothed(&self, now: Time, decay_ns: f64) -> f64 {
        // It fades towards 0: what is in the band now stays there, at no cost.
        if self.log > DEAD_BAND {
            return 1.0;
        }
        let log = self.projected_log(now, decay_ns);
        if log > DEAD_BAND {
            return 1.0;
        }
        libm::exp(log).max(LEAST)
    }

    fn faded(&self, now: Time, decay_ns: f64) -> f64 {
        libm::exp(-(now.since_ns(self.at) as f64) / decay_ns)
    }

    fn projected_log(&self, now: Time, decay_ns: f64) -> f64 {
        if self.log == 0.0 {
            return 0.0;
        }
        self.log * self.faded(now, decay_ns)
    }

    fn projected(&self, now: Time, decay_ns: f64) -> [f64; GRID] {
        let kept = self.faded(now, decay_ns);
        let mut p = self.posterior;
        for (k, p) in p.iter_mut().enumerate() {
            let prior = if k == 0 { 0.5 } else { 1.0 / 12.0 };
            *p = kept * *p + (1.0 - kept) * prior;
        }
        p
    }
}

/// Raises each to at least `floor` and scales the sum to one.
fn normalize(p: &mut [f64; GRID], floor: f64) {
    let sum: f64 = p.iter().sum();
    if sum > 0.0 {
        p.iter_mut().for_each(|p| *p /= sum);
    }
    p.iter_mut().for_each(|p| *p = p.max(floor));
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= sum);
}

#[cfg(test)]
mod tests {
    use super::{Progress, Rule, Sample, Speed};
    use crate::time::Time;

    const DECAY_NS: f64 = 30e9;

    fn after(rule: Rule, attained_ms: f64, times: u64) -> f64 {
        let mut speed = Speed::default();
        let mut now = Time::ZERO;
        for i in 1..=times {
            now = Time::from_millis(i * 10);
            let job = Sample {
                mean_ms: 100.0,
                count: 50,
                spread: 0.1,
                attained_ms,
            };
            speed.learn(rule, now, DECAY_NS, job);
        }
        speed.estimate(rule, now, DECAY_NS, std::iter::empty())
    }

    #[test]
    fn twice_as_long_is_half_the_speed() {
        for rule in [Rule::Ewma, Rule::Filter] {
            let speed = after(rule, 200.0, 100);
            assert!((speed - 0.5).abs() < 0.03, "{rule:?} {speed}");
            assert!(after(rule, 100.0, 100) > 0.97, "{rule:?}");
        }
        assert_eq!(after(Rule::Off, 200.0, 100), 1.0);
    }

    #[test]
    fn a_job_long_overdue_shows_before_it_ends() {
        for rule in [Rule::Ewma, Rule::Filter] {
            let running = Sample {
                mean_ms: 100.0,
                count: 50,
                spread: 0.1,
                attained_ms: 400.0,
            };
            let mut fresh = Speed::default();
            let usual = Sample {
                attained_ms: 100.0,
                ..running
            };
            fresh.learn(rule, Time::ZERO, DECAY_NS, usual);
            let alone = fresh.estimate(rule, Time::ZERO, DECAY_NS, std::iter::empty());
            let overdue = fresh.estimate(rule, Time::ZERO, DECAY_NS, std::iter::once(running));
            assert!(alone > 0.9 && overdue < 0.5, "{rule:?} {alone} {overdue}");
        }
    }

    #[test]
    fn what_others_slow_down_is_not_called_slow() {
        for rule in [Rule::Ewma, Rule::Filter] {
            let mut speed = Speed::default();
            for i in 1..=100 {
                let job = Sample {
                    mean_ms: 100.0,
                    count: 50,
                    spread: 0.1,
                    attained_ms: 200.0,
                };
                speed.learn(rule, Time::from_millis(i * 10), DECAY_NS, job);
            }
            let now =
                |s: &Speed| s.estimate(rule, Time::from_millis(1000), DECAY_NS, std::iter::empty());
            let slow = now(&speed);
            assert!(slow < 0.6, "{rule:?} {slow}");
            // A send that overtakes the question is counted as another's now and then.
            for i in 0..100 {
                speed.note_company(8, u32::from(i % 10 == 0));
            }
            assert_eq!(now(&speed), slow, "{rule:?}");
            for _ in 0..100 {
                speed.note_company(8, 4);
            }
            assert_eq!(now(&speed), 1.0, "{rule:?}");
        }
    }

    #[test]
    fn progress_that_the_worker_tells_outweighs_how_long_jobs_take() {
        for rule in [Rule::Ewma, Rule::Filter] {
            let mut speed = Speed::default();
            let way = Progress {
                told_ms: 50.0,
                nominal_ms: 100.0,
                jobs: 1,
            };
            let long = Sample {
                mean_ms: 100.0,
                count: 50,
                spread: 0.1,
                attained_ms: 1000.0,
            };
            let mut now = Time::ZERO;
            for i in 1..=10 {
                now = Time::from_millis(i * 100);
                speed.measure(rule, now, DECAY_NS, way);
                speed.learn(rule, now, DECAY_NS, long);
            }
            let told = speed.estimate(rule, now, DECAY_NS, std::iter::empty());
            assert!((told - 0.5).abs() < 0.03, "{rule:?} {told}");
            // Nothing told, nothing measured.
            speed.measure(rule, now, DECAY_NS, Progress::default());
            assert_eq!(
                told,
                speed.estimate(rule, now, DECAY_NS, std::iter::empty())
            );
        }
    }

    #[test]
    fn the_worker_is_believed_within_bounds() {
        let mut speed = Speed::default();
        let now = |s: &Speed| s.estimate(Rule::Reported, Time::ZERO, DECAY_NS, std::iter::empty());
        assert_eq!(now(&speed), 1.0);
        speed.report(0.5);
        assert_eq!(now(&speed), 0.5);
        speed.report(f64::NAN);
        speed.report(-1.0);
        assert_eq!(now(&speed), 0.5);
        speed.report(1e9);
        assert_eq!(now(&speed), 2.0);
    }
}

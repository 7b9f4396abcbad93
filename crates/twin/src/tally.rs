//! What a run adds up to: mean and quantiles of latency, shares, and whether the system was stable.

use crate::output::{Backlog, Batches};
use crate::sum::{Sum, Tray};

pub use crate::output::Verdict;

/// Requests per worker below which some worker gets more than it can do by chance, and that alone says
/// nothing.
const FEW_PER_WORKER: u64 = 1000;
/// Fewer requests after the warm-up say nothing of growth: not one for each of its slices.
const FEWEST: u64 = 20;
/// First width of the bins of the number in the system, mean works.
const BIN: f64 = 0.01;

/// Actions of a closed loop, those that began after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Actions {
    /// All calls made.
    pub complete: u64,
    /// All of them good.
    pub good: u64,
}

/// The result of a run; times in s.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Requests that arrived.
    pub requests: u64,
    /// Of those, not answered well.
    pub failed: u64,
    /// Good answers behind the mean and the quantiles.
    pub measured: u64,
    /// Mean latency; none without a measured answer.
    pub mean: Option<f64>,
    /// Its standard error, by batch means; none of too few answers.
    pub standard_error: Option<f64>,
    /// Half the width of its 95 % interval; none of too few answers.
    pub half_width: Option<f64>,
    /// Latency quantiles .5, .95, .99.
    pub quantiles: Option<[f64; 3]>,
    /// Mean of latency over the work at one core of speed 1; none without a measured answer.
    pub slowdown: Option<f64>,
    /// Work routed to each worker over what it could do.
    pub utilizations: Vec<f64>,
    /// Share of the picks of each worker.
    pub shares: Vec<f64>,
    /// Whether the system could keep up.
    pub verdict: Verdict,
    /// Actions of a closed loop.
    pub actions: Option<Actions>,
    /// Simulated time.
    pub duration: f64,
}

/// What was sent to one worker after the warm-up.
#[derive(Debug, Clone, Copy, Default)]
struct Routed {
    picks: u64,
    work: Sum,
}

/// What is counted while a run goes.
#[derive(Debug)]
pub struct Tally {
    requests: u64,
    warm_from: u64,
    seen: u64,
    failed: u64,
    latencies: Batches,
    slowdowns: Sum,
    routed: Vec<Routed>,
    backlog: Backlog,
    time_in_system: Tray,
    capacity_at_window: Vec<f64>,
    capacity_at_last: Vec<f64>,
    last_arrival: f64,
}

impl Tally {
    /// For a run of so many requests of this mean work, the first `warm_from` left out, over so many
    /// workers.
    pub fn new(requests: u64, warm_from: u64, workers: usize, mean_work: f64) -> Self {
        Self {
            requests,
            warm_from,
            seen: 0,
            failed: 0,
            latencies: Batches::expecting(requests - warm_from),
            slowdowns: Sum::default(),
            routed: vec![Routed::default(); workers],
            backlog: Backlog::new(BIN * mean_work),
            time_in_system: Tray::default(),
            capacity_at_window: vec![0.0; workers],
            capacity_at_last: vec![0.0; workers],
            last_arrival: 0.0,
        }
    }

    /// Request `seq` arrives; `capacities` is asked at the edges of the window only.
    #[inline(always)]
    pub fn arrived(&mut self, seq: u64, now: f64, capacities: impl FnOnce() -> Vec<f64>) {
        self.backlog.change(now, 1.0);
        if seq == self.warm_from {
            self.capacity_at_window = capacities();
        } else if seq + 1 == self.requests {
            self.capacity_at_last = capacities();
            self.last_arrival = now;
        }
    }

    /// Request `seq`, of so much work, was sent to a worker.
    #[inline(always)]
    pub fn picked(&mut self, seq: u64, worker: u32, work: f64) {
        if seq >= self.warm_from {
            let routed = &mut self.routed[worker as usize];
            routed.picks += 1;
            routed.work.add(work);
        }
    }

    /// A request of so much work is finished; tells whether it belongs to the warm-up.
    #[inline(always)]
    pub fn finished(&mut self, now: f64, latency: f64, work: f64, ok: bool) -> bool {
        self.backlog.change(now, -1.0);
        self.time_in_system.add(latency);
        self.seen += 1;
        self.failed += u64::from(!ok);
        if self.seen <= self.warm_from {
            return true;
        }
        if ok {
            self.latencies.add(latency);
            self.slowdowns.add(latency / work);
        }
        false
    }

    /// Empties the trays; to be called at least every [`crate::sum::TRAY`] events.
    pub fn settle(&mut self) {
        self.time_in_system.empty();
    }

    /// Both sides of Little's law: the integral of the number in the system, and the time spent in
    /// it by the finished.
    pub fn little(&self, now: f64) -> (f64, f64) {
        (self.backlog.integral(now), self.time_in_system.value())
    }

    /// The result at the end.
    pub fn outcome(&self, duration: f64, actions: Option<Actions>) -> Outcome {
        let total: u64 = self.routed.iter().map(|r| r.picks).sum();
        let share = |routed: &Routed| routed.picks as f64 / total.max(1) as f64;
        let mean = self.latencies.mean();
        let all = self.latencies.histogram();
        Outcome {
            requests: self.seen,
            failed: self.failed,
            measured: all.total(),
            mean: mean.map(|m| m.value),
            standard_error: mean.and_then(|m| m.standard_error),
            half_width: mean.and_then(|m| m.half_width),
            quantiles: mean.map(|_| [0.5, 0.95, 0.99].map(|q| all.rough_quantile(q))),
            slowdown: mean.map(|_| self.slowdowns.value() / all.total() as f64),
            utilizations: self.utilizations(),
            shares: self.routed.iter().map(share).collect(),
            verdict: self.verdict(),
            actions,
            duration,
        }
    }

    /// What each worker could do between the first arrival after the warm-up and the last one.
    fn capacities(&self) -> impl Iterator<Item = f64> {
        let edges = self.capacity_at_last.iter().zip(&self.capacity_at_window);
        edges.map(|(last, first)| last - first)
    }

    fn works(&self) -> impl Iterator<Item = f64> {
        self.routed.iter().map(|r| r.work.value())
    }

    fn utilizations(&self) -> Vec<f64> {
        let both = self.works().zip(self.capacities());
        both.map(|(work, could)| if could > 0.0 { work / could } else { 0.0 })
            .collect()
    }

    /// On the window after the first tenth.
    fn verdict(&self) -> Verdict {
        if self.requests < self.warm_from + FEWEST {
            return Verdict::TooShort;
        }
        let routed: Vec<f64> = self.works().collect();
        let capacity: Vec<f64> = self.capacities().collect();
        let end = self.last_arrival;
        let growth = self.backlog.growth(0.1 * end, end);
        let few = (self.requests - self.warm_from) / (self.routed.len() as u64) < FEW_PER_WORKER;
        if few && !growth.is_some_and(|g| g.grows) {
            return Verdict::Stable;
        }
        Verdict::of(&routed, &capacity, growth)
    }
}

//! What a run adds up to: mean and quantiles of latency, shares, and whether the system was stable.

mod area;
mod histogram;

use crate::sum::Sum;
use area::Area;
use histogram::Histogram;

/// Batches of the interval of the mean.
const BATCHES: usize = 40;
/// Student's t, two-sided 95 %, for 39, 19 and 9 degrees of freedom.
const T_95: [(usize, f64); 3] = [(40, 2.0227), (20, 2.0930), (10, 2.2622)];

/// Actions of a closed loop, those that began after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Actions {
    /// All calls made.
    pub complete: u64,
    /// All of them good.
    pub good: u64,
}

/// Whether the system could keep up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// No sign of trouble.
    Stable,
    /// One of the two signs: the run was too short to tell.
    Inconclusive,
    /// A worker got more work than it can do and the number of requests in the system grew.
    Unstable {
        /// Growth of the number in the system, requests per second.
        drift_rps: f64,
        /// Place of the worker with the most work for its capacity.
        worker: usize,
    },
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
    /// Half the width of its 95 % interval, by batch means; none of too few answers.
    pub half_width: Option<f64>,
    /// Latency quantiles .5, .95, .99.
    pub quantiles: Option<[f64; 3]>,
    /// Share of the picks of each worker.
    pub shares: Vec<f64>,
    /// Whether the system could keep up.
    pub verdict: Verdict,
    /// Actions of a closed loop.
    pub actions: Option<Actions>,
    /// Simulated time.
    pub duration: f64,
}

/// What is counted while a run goes.
#[derive(Debug)]
pub struct Tally {
    requests: u64,
    warm_from: u64,
    seen: u64,
    failed: u64,
    measured: u64,
    sum: Sum,
    batches: [Sum; BATCHES],
    per_batch: u64,
    histogram: Histogram,
    picks: Vec<u64>,
    routed: Vec<Sum>,
    area: Area,
    time_in_system: Sum,
    capacity_at_window: Vec<f64>,
    capacity_at_last: Vec<f64>,
    last_arrival: f64,
}

impl Tally {
    /// For a run of so many requests, the first `warm_from` left out, over so many workers.
    pub fn new(requests: u64, warm_from: u64, workers: usize) -> Self {
        Self {
            requests,
            warm_from,
            seen: 0,
            failed: 0,
            measured: 0,
            sum: Sum::default(),
            batches: [Sum::default(); BATCHES],
            per_batch: ((requests - warm_from) / BATCHES as u64).max(1),
            histogram: Histogram::default(),
            picks: vec![0; workers],
            routed: vec![Sum::default(); workers],
            area: Area::default(),
            time_in_system: Sum::default(),
            capacity_at_window: vec![0.0; workers],
            capacity_at_last: vec![0.0; workers],
            last_arrival: 0.0,
        }
    }

    /// Request `seq` arrives; `capacities` is asked at the edges of the window only.
    #[inline]
    pub fn arrived(&mut self, seq: u64, now: f64, capacities: impl FnOnce() -> Vec<f64>) {
        self.area.change(now, 1.0);
        if seq == self.warm_from {
            self.capacity_at_window = capacities();
        } else if seq + 1 == self.requests {
            self.capacity_at_last = capacities();
            self.last_arrival = now;
        }
    }

    /// Request `seq`, of so much work, was sent to a worker.
    #[inline]
    pub fn picked(&mut self, seq: u64, worker: u32, work: f64) {
        if seq >= self.warm_from {
            self.picks[worker as usize] += 1;
            self.routed[worker as usize].add(work);
        }
    }

    /// A request is finished; tells whether it belongs to the warm-up.
    #[inline]
    pub fn finished(&mut self, now: f64, latency: f64, ok: bool) -> bool {
        self.area.change(now, -1.0);
        self.time_in_system.add(latency);
        self.seen += 1;
        self.failed += u64::from(!ok);
        if self.seen <= self.warm_from {
            return true;
        }
        if ok {
            let batch = (self.measured / self.per_batch) as usize;
            if batch < BATCHES {
                self.batches[batch].add(latency);
            }
            self.measured += 1;
            self.sum.add(latency);
            self.histogram.add(latency);
        }
        false
    }

    /// Both sides of Little's law: the integral of the number in the system, and the time spent in
    /// it by the finished.
    pub fn little(&self, now: f64) -> (f64, f64) {
        (self.area.total(now), self.time_in_system.value())
    }

    /// The result at the end.
    pub fn outcome(&self, duration: f64, actions: Option<Actions>) -> Outcome {
        let total: u64 = self.picks.iter().sum();
        let share = |picks: &u64| *picks as f64 / total.max(1) as f64;
        let n = self.measured;
        Outcome {
            requests: self.seen,
            failed: self.failed,
            measured: n,
            mean: (n > 0).then(|| self.sum.value() / n as f64),
            half_width: self.half_width(),
            quantiles: (n > 0).then(|| [0.5, 0.95, 0.99].map(|q| self.histogram.quantile(q))),
            shares: self.picks.iter().map(share).collect(),
            verdict: self.verdict(),
            actions,
            duration,
        }
    }

    /// From batch means; neighbors are merged while their lag-1 correlation is above 0.1.
    fn half_width(&self) -> Option<f64> {
        if self.measured < BATCHES as u64 * 2 {
            return None;
        }
        let full = (self.measured / self.per_batch).min(BATCHES as u64) as usize;
        if full < BATCHES {
            return None;
        }
        let mut means: Vec<f64> = self
            .batches
            .iter()
            .map(|b| b.value() / self.per_batch as f64)
            .collect();
        loop {
            let n = means.len();
            let mean = means.iter().sum::<f64>() / n as f64;
            let squares: f64 = means.iter().map(|m| (m - mean).powi(2)).sum();
            let products = means.windows(2).map(|w| (w[0] - mean) * (w[1] - mean));
            let correlation = if squares > 0.0 {
                products.sum::<f64>() / squares
            } else {
                0.0
            };
            if correlation <= 0.1 || n == 10 {
                let t = T_95.iter().find(|(batches, _)| *batches == n)?.1;
                let variance = squares / (n - 1) as f64;
                return Some(t * (variance / n as f64).sqrt());
            }
            means = means
                .chunks(2)
                .map(|pair| (pair[0] + pair[1]) / 2.0)
                .collect();
        }
    }

    /// Sign (a): more work was routed to a worker in the window than it can do. Sign (b): the number
    /// in the system grew over 20 equal slices of it.
    fn verdict(&self) -> Verdict {
        let loads = (0..self.routed.len()).map(|w| {
            let capacity = self.capacity_at_last[w] - self.capacity_at_window[w];
            (self.routed[w].value() / capacity.max(f64::MIN_POSITIVE), w)
        });
        let (load, worker) = loads.fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a });
        let (slope, grows) = self.area.growth(0.1 * self.last_arrival, self.last_arrival);
        match (load >= 1.0, grows) {
            (true, true) => Verdict::Unstable {
                drift_rps: slope,
                worker,
            },
            (false, false) => Verdict::Stable,
            _ => Verdict::Inconclusive,
        }
    }
}

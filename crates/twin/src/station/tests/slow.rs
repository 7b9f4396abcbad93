//! The slow, obvious stations: every step walks all requests and subtracts what they attained.

use crate::station::{Cap, Job, Model, Shape};

/// Two events closer than this are one, s.
pub(super) const ROUNDING: f64 = 1e-11;

pub(super) struct Slow {
    shape: Shape,
    pub(super) speed: f64,
    now: f64,
    /// Job, work left, class.
    jobs: Vec<(Job, f64, u32)>,
    budget: f64,
    pub(super) held: f64,
}

impl Slow {
    pub(super) fn new(shape: &Shape) -> Self {
        let budget = match shape.model {
            Model::Quota { period, .. } => shape.cores * period,
            _ => f64::INFINITY,
        };
        Self {
            shape: shape.clone(),
            speed: shape.speed,
            now: 0.0,
            jobs: Vec::new(),
            budget,
            held: 0.0,
        }
    }

    pub(super) fn arrive(&mut self, job: Job, work: f64, class: u32) {
        self.jobs.push((job, work, class));
    }

    pub(super) fn cancel(&mut self, job: Job) {
        self.jobs.retain(|(j, ..)| *j != job);
    }

    pub(super) fn clear(&mut self) {
        self.jobs.clear();
    }

    pub(super) fn present(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn left(&self) -> f64 {
        self.jobs.iter().map(|(_, left, _)| left.max(0.0)).sum()
    }

    /// Cores of each request.
    fn cores_each(&self) -> Vec<f64> {
        let (c, n) = (self.shape.cores, self.jobs.len() as f64);
        let each = |share: f64| vec![share; self.jobs.len()];
        match &self.shape.model {
            Model::Ps | Model::Grid { .. } => each((c / n).min(1.0)),
            Model::Quota { host_cores, .. } if self.budget > ROUNDING => {
                each((host_cores / n).min(1.0))
            }
            Model::Quota { .. } => each(0.0),
            Model::Fcfs => {
                let servers = c.round().max(1.0);
                let served = |i: usize| (i as f64) < servers;
                (0..self.jobs.len())
                    .map(|i| if served(i) { c / servers } else { 0.0 })
                    .collect()
            }
            Model::Weighted { weights, cap } => {
                let cap = if *cap == Cap::OneCore {
                    1.0
                } else {
                    f64::INFINITY
                };
                let share = |level: f64| -> Vec<f64> {
                    let of = |(_, _, k): &(Job, f64, u32)| (level * weights[*k as usize]).min(cap);
                    self.jobs.iter().map(of).collect()
                };
                // The water level at which the cores are just used up, by bisection.
                let (mut low, mut high) = (0.0, 1e3);
                for _ in 0..200 {
                    let middle = 0.5 * (low + high);
                    let used: f64 = share(middle).iter().sum();
                    if used < c {
                        low = middle
                    } else {
                        high = middle
                    }
                }
                share(high)
            }
        }
    }

    pub(super) fn advance(&mut self, to: f64, left: &mut Vec<(Job, f64)>) {
        loop {
            let on_grid = match self.shape.model {
                Model::Grid { step } => {
                    let turn = (self.now / step).round();
                    (self.now - turn * step).abs() < ROUNDING
                }
                _ => true,
            };
            if on_grid {
                let now = self.now;
                self.jobs.retain(|(job, work, _)| {
                    let done = *work < ROUNDING;
                    if done {
                        left.push((*job, now));
                    }
                    !done
                });
            }
            if to - self.now < ROUNDING {
                self.held += (to - self.now).max(0.0) * self.jobs.len() as f64;
                self.now = self.now.max(to);
                return;
            }
            let cores = self.cores_each();
            let busy: f64 = cores.iter().sum();
            let mut until = to;
            match self.shape.model {
                Model::Grid { step } => {
                    until = until.min(((self.now + ROUNDING) / step).floor() * step + step);
                }
                _ => {
                    for ((_, work, _), c) in self.jobs.iter().zip(&cores) {
                        if c * self.speed > 0.0 {
                            until = until.min(self.now + work / (c * self.speed));
                        }
                    }
                }
            }
            if let Model::Quota { period, phase, .. } = self.shape.model {
                let turns = ((self.now + ROUNDING - phase) / period).floor();
                until = until.min(phase + (turns + 1.0) * period);
                if busy > 0.0 {
                    until = until.min(self.now + self.budget / busy);
                }
            }
            let dt = until - self.now;
            self.held += dt * self.jobs.len() as f64;
            for ((_, work, _), c) in self.jobs.iter_mut().zip(&cores) {
                *work -= dt * c * self.speed;
            }
            self.budget -= dt * busy;
            self.now = until;
            if let Model::Quota { period, phase, .. } = self.shape.model {
                let turn = (self.now - phase) / period;
                if turn > -ROUNDING && (turn - turn.round()).abs() * period < ROUNDING {
                    self.budget = self.shape.cores * period;
                }
            }
        }
    }
}

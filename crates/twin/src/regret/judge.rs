//! What each pick cost beyond the cheapest, and what a run's picks come to.

use super::rebuild::{Discipline, Stay, Worker, World};
use crate::sum::Sum;
use serde::Serialize;
use strategies::work_left::{Cost, Price};

/// A candidate costs what the least does if it is within this part of it: the rest is rounding.
const SAME: f64 = 1e-9;
/// A pick within this part of the least is a hit.
const HIT: f64 = 0.01;

/// Mean and 95th percentile over the picks of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Tail {
    pub(super) mean: f64,
    pub(super) p95: f64,
}

/// The picks of one run, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Verdict {
    pub(super) picks: u64,
    /// Own time of the chosen minus the least own time.
    pub(super) regret_own_ms: Tail,
    /// Own time and the others' delay of the chosen, minus the least of these sums.
    pub(super) regret_mc_ms: Tail,
    /// Share within 1 % of the least own time, of the least sum.
    pub(super) hit_own: f64,
    pub(super) hit_mc: f64,
    /// Share that took the cheapest by the sum, the second, ..; those of one cost share the better rank.
    pub(super) rank_shares: Vec<f64>,
    /// Speed of each worker by what it did, 1 = as stated; none for one that did nothing.
    pub(super) measured_speeds: Vec<Option<f64>>,
}

/// Judges the picks of a run; `None` if none is to be judged. `stays` are in the order of their picks.
pub(super) fn judge(workers: &[Worker], discipline: Discipline, stays: &[Stay]) -> Option<Verdict> {
    let mut world = World::new(workers, discipline, stays);
    let speeds = workers.iter().enumerate();
    let measured_speeds = speeds
        .map(|(w, stated)| world.measured_speed(w, stated))
        .collect();
    let mut prices: Vec<Price> = workers
        .iter()
        .map(|w| Price::new(w.cores, discipline == Discipline::InOrder))
        .collect();
    let mut costs = vec![Cost::default(); workers.len()];
    let (mut own, mut mc) = (Regrets::default(), Regrets::default());
    let mut ranks = vec![0_u64; workers.len()];
    for (at, stay) in stays.iter().enumerate() {
        world.advance_to(at);
        if stay.judged {
            for (w, price) in prices.iter_mut().enumerate() {
                let nominal = price.cost(stay.work_ms, world.left_ms(w));
                costs[w] = Cost {
                    own_ms: nominal.own_ms / workers[w].speed,
                    others_ms: nominal.others_ms / workers[w].speed,
                };
            }
            own.add(stay.worker, costs.iter().map(|c| c.own_ms));
            let cheaper = mc.add(stay.worker, costs.iter().map(|c| c.own_ms + c.others_ms));
            ranks[cheaper] += 1;
        }
        world.place(at);
    }
    let picks = own.regrets_ms.len();
    (picks > 0).then(|| Verdict {
        picks: picks as u64,
        regret_own_ms: own.tail(),
        regret_mc_ms: mc.tail(),
        hit_own: own.hits as f64 / picks as f64,
        hit_mc: mc.hits as f64 / picks as f64,
        rank_shares: ranks.iter().map(|r| *r as f64 / picks as f64).collect(),
        measured_speeds,
    })
}

#[derive(Debug, Default)]
struct Regrets {
    regrets_ms: Vec<f64>,
    hits: u64,
}

impl Regrets {
    /// Takes a pick of `chosen`; how many candidates were cheaper.
    fn add(&mut self, chosen: usize, costs: impl Iterator<Item = f64> + Clone) -> usize {
        let paid = costs.clone().nth(chosen).unwrap_or_default();
        let least = costs.clone().fold(f64::INFINITY, f64::min);
        let is_least = paid * (1.0 - SAME) <= least;
        self.regrets_ms
            .push(if is_least { 0.0 } else { paid - least });
        self.hits += u64::from(paid <= least * (1.0 + HIT));
        costs.filter(|cost| *cost < paid * (1.0 - SAME)).count()
    }

    fn tail(&mut self) -> Tail {
        let n = self.regrets_ms.len();
        let mut sum = Sum::default();
        self.regrets_ms.iter().for_each(|r| sum.add(*r));
        let rank = libm::ceil(0.95 * n as f64) as usize - 1;
        let (_, p95, _) = self.regrets_ms.select_nth_unstable_by(rank, f64::total_cmp);
        Tail {
            mean: sum.value() / n as f64,
            p95: *p95,
        }
    }
}

//! Where an arrival goes, by the counts it finds.

use super::{Chain, MAX_WORKERS};
use crate::bound::{OutOfBounds, require, require_share};
use crate::worker::Worker;

/// A strategy on the chain.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// The best there is.
    Optimal,
    /// Least (n + 1)/capacity: shortest expected delay.
    ExpectedDelay,
    /// Least n/capacity.
    PerCapacity,
    /// Least n: join the shortest.
    Shortest,
    /// Random with these probabilities, whatever the counts.
    Split(Vec<f64>),
}

/// A share this close to 1 is all of it.
const NEARLY_ALL: f64 = 1.0 - 1e-9;
/// Scores this close, relatively, are ties: capacities such as .6 are not exact.
const TIE: f64 = 1e-12;

/// The probabilities of a rule at every state; none for the optimum, which follows from the values.
pub(super) enum Choices {
    Optimal,
    /// Probability of each worker whose count may grow; what would leave the box is 0.
    Fixed(Vec<[f64; MAX_WORKERS]>),
}

impl Rule {
    /// The score of a worker with `n` requests, lower is better; none where the rule has no scores.
    fn score(&self, worker: &Worker, n: usize) -> Option<f64> {
        let n = n as f64;
        match self {
            Self::ExpectedDelay => Some((n + 1.0) / worker.capacity()),
            Self::PerCapacity => Some(n / worker.capacity()),
            Self::Shortest => Some(n),
            Self::Optimal | Self::Split(_) => None,
        }
    }

    /// Whether workers are coupled, so that the total number is what matters in the long run.
    pub(super) fn depends_on_counts(&self) -> bool {
        !matches!(self, Self::Split(_))
    }

    pub(super) fn choices(&self, chain: &Chain) -> Result<Choices, OutOfBounds> {
        if let Self::Split(shares) = self {
            let is_met = shares.len() == chain.workers.len();
            require(is_met, "shares", shares.len() as f64, "as many as workers")?;
            for &share in shares {
                require_share("share", share)?;
            }
            let sum: f64 = shares.iter().sum();
            require((sum - 1.0).abs() < 1e-9, "sum of the shares", sum, "1")?;
        }
        if *self == Self::Optimal {
            return Ok(Choices::Optimal);
        }
        let mut table = Vec::with_capacity(chain.sizes.iter().product());
        chain.each_state(|_, n| {
            let mut shares = self.shares_at(chain, n);
            for i in 0..MAX_WORKERS {
                if n[i] + 1 >= chain.sizes[i] {
                    shares[i] = 0.0;
                }
            }
            table.push(shares);
        });
        Ok(Choices::Fixed(table))
    }

    fn shares_at(&self, chain: &Chain, n: [usize; MAX_WORKERS]) -> [f64; MAX_WORKERS] {
        let mut shares = [0.0; MAX_WORKERS];
        if let Self::Split(given) = self {
            shares[..given.len()].copy_from_slice(given);
            return shares;
        }
        let scores = chain.workers.iter().zip(n);
        let scores: Vec<f64> = scores.filter_map(|(w, n)| self.score(w, n)).collect();
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let is_tied = |score: &f64| *score <= least * (1.0 + TIE);
        let tied = scores.iter().filter(|s| is_tied(s)).count() as f64;
        for (share, score) in shares.iter_mut().zip(&scores) {
            *share = if is_tied(score) { 1.0 / tied } else { 0.0 };
        }
        shares
    }
}

impl Choices {
    /// Probability that an arrival stays in the box, and that probability times the value it leads to.
    #[inline]
    pub(super) fn after_arrival(
        &self,
        chain: &Chain,
        values: &[f64],
        at: usize,
        n: [usize; MAX_WORKERS],
    ) -> (f64, f64) {
        let strides = chain.strides();
        match self {
            Self::Fixed(table) => {
                let (mut share, mut value) = (0.0, 0.0);
                for i in 0..MAX_WORKERS {
                    let p = table[at][i];
                    if p > 0.0 {
                        share += p;
                        value += p * values[at + strides[i]];
                    }
                }
                (share, value)
            }
            Self::Optimal => {
                let mut least = f64::INFINITY;
                for i in 0..MAX_WORKERS {
                    if n[i] + 1 < chain.sizes[i] {
                        least = least.min(values[at + strides[i]]);
                    }
                }
                if least.is_finite() {
                    (1.0, least)
                } else {
                    (0.0, 0.0)
                }
            }
        }
    }
}

impl Choices {
    /// A most likely next state of an arrival; none if the arrival may leave the box.
    pub(super) fn next(
        &self,
        chain: &Chain,
        values: &[f64],
        at: usize,
        n: [usize; MAX_WORKERS],
    ) -> Option<usize> {
        let strides = chain.strides();
        let inside = (0..MAX_WORKERS).filter(|&i| n[i] + 1 < chain.sizes[i]);
        match self {
            Self::Fixed(table) => {
                let likely = |&a: &usize, &b: &usize| table[at][a].total_cmp(&table[at][b]);
                let stays = table[at].iter().sum::<f64>() >= NEARLY_ALL;
                inside.max_by(likely).filter(|_| stays)
            }
            Self::Optimal => {
                let value = |i: usize| values[at + strides[i]];
                inside.min_by(|&a, &b| value(a).total_cmp(&value(b)))
            }
        }
    }
}

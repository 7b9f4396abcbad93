//! Draws of several eligible backends at once.

use crate::backends::{Backend, Backends};
use crate::strategy::Rng;
use crate::values::BackendId;
use schema::rng::{below, distinct_pair};

/// Room for the draws of one pick.
#[derive(Debug, Clone, Default)]
pub struct Draws {
    drawn: Vec<u32>,
    /// The same, ascending.
    sorted: Vec<u32>,
}

impl Draws {
    /// Two distinct eligible backends in the order drawn. One eligible: that one twice, no draw.
    pub fn pair<'a>(backends: &'a Backends, rng: &mut Rng) -> Option<(&'a Backend, &'a Backend)> {
        match backends.eligible_len() {
            0 => None,
            1 => Some((backends.eligible_at(0), backends.eligible_at(0))),
            n => {
                let (a, b) = distinct_pair(rng, n as u64);
                Some((
                    backends.eligible_at(a as usize),
                    backends.eligible_at(b as usize),
                ))
            }
        }
    }

    /// `d` distinct numbers below `n` in the order drawn, every order equally likely; needs `d <= n`.
    pub fn distinct(&mut self, n: usize, d: usize, rng: &mut Rng) -> &[u32] {
        self.drawn.clear();
        self.sorted.clear();
        for i in 0..d {
            // Counts only those not drawn yet, so it steps over the drawn ones below it.
            let mut value = below(rng, (n - i) as u64) as u32;
            let mut at = 0;
            while at < self.sorted.len() && self.sorted[at] <= value {
                value += 1;
                at += 1;
            }
            self.sorted.insert(at, value);
            self.drawn.push(value);
        }
        &self.drawn
    }

    /// `d` numbers below `n`, any of them possibly more than once.
    pub fn repeated(&mut self, n: usize, d: usize, rng: &mut Rng) -> &[u32] {
        self.drawn.clear();
        for _ in 0..d {
            self.drawn.push(below(rng, n as u64) as u32);
        }
        &self.drawn
    }

    /// The one of two with the lower load, the first on equality.
    pub fn lower<L: PartialOrd>(
        pair: (&Backend, &Backend),
        mut load: impl FnMut(&Backend) -> L,
    ) -> BackendId {
        let (first, second) = (load(pair.0), load(pair.1));
        if second < first { pair.1.id } else { pair.0.id }
    }
}

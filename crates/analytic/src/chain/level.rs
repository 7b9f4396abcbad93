//! The correction of relative values by the total number in the system.
//!
//! What plain iteration is slow about is the value of a whole request more or less, a function f of the
//! total N alone. Along the path that arrivals take from the empty pool, f obeys the equation of a
//! birth-death chain: with w_N = f(N+1) - f(N), r_N what the equation gives for the mean number at the
//! path's state of N requests now, and g the number that all of them should give,
//! lambda*w_N - mu_N*w_{N-1} + r_N = g. It is solved downward from the end of the path, where w = 0, the
//! direction in which errors shrink; N = 0 then fixes g. The sweeps that follow smooth what differs off
//! the path.

use super::rule::Choices;
use super::{Chain, MAX_WORKERS};

impl Chain {
    /// Adds f of the total to every value and returns the mean number that goes with it.
    pub(super) fn correct_by_level(&self, choices: &Choices, values: &mut [f64]) -> f64 {
        let (given, deaths) = self.along_the_path(choices, values);
        let top = given.len() - 1;
        // w_N = known_N + slope_N*g.
        let (mut known, mut slope) = (vec![0.0; top + 1], vec![0.0; top + 1]);
        for n in (1..=top).rev() {
            known[n - 1] = (self.rate * known[n] + given[n]) / deaths[n];
            slope[n - 1] = (self.rate * slope[n] - 1.0) / deaths[n];
        }
        let number = (self.rate * known[0] + given[0]) / (1.0 - self.rate * slope[0]);
        let most: usize = self.sizes.iter().sum();
        let mut added = vec![0.0; most];
        for n in 1..most {
            let step = if n <= top {
                known[n - 1] + slope[n - 1] * number
            } else {
                0.0
            };
            added[n] = added[n - 1] + step;
        }
        self.each_state(|at, n| values[at] += added[n.iter().sum::<usize>()]);
        number
    }

    /// At each state on the way of arrivals from the empty pool to the edge of the box: the mean number
    /// that the equation gives there, and the rate of departures.
    fn along_the_path(&self, choices: &Choices, values: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut given, mut deaths) = (Vec::new(), Vec::new());
        let (mut at, mut n) = (0, [0; MAX_WORKERS]);
        loop {
            let (inflow, out) = self.balance(choices, values, at, n);
            given.push(inflow - out * values[at]);
            let busy = self.workers.iter().zip(n);
            deaths.push(busy.map(|(w, n)| w.departure_rate(n as f64)).sum());
            let Some(next) = choices.next(self, values, at, n) else {
                return (given, deaths);
            };
            n[next] += 1;
            at += self.strides()[next];
        }
    }
}

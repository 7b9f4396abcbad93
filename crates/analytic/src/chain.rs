//! The best dynamic strategy, and fixed ones, exactly: the Markov chain of the numbers at up to three
//! unequal workers, Poisson arrivals, exponential sizes, live counts.
//!
//! In state n = (n_1, n_2, n_3) a strategy sends the next arrival to some worker; worker i finishes
//! requests at s_i*min(n_i, c_i). The relative values V and the mean number g satisfy
//! g = |n| + lambda*(V(n + chosen) - V(n)) + sum_i mu_i(n_i)*(V(n - e_i) - V(n)); the optimum chooses the
//! least V(n + e_i) (Howard 1960; White 1963), ties of a fixed strategy are split evenly, E[T] = g/lambda.
//! Counts are cut off at the edge of a box: the optimum may not step out, a fixed strategy loses the step.
//!
//! Method: relative value iteration with the newest values in place (Gauss-Seidel, forth and back), and
//! after every ten sweeps a correction by the total number in the system ([`level`]), the one mode that
//! plain iteration takes thousands of sweeps for. It ends when the g that the equation gives at every
//! state of the inner third of the box is the same to 2e-6 of a mean response. Plain value iteration is
//! the oracle in the tests. Cost: a few operations per worker, state and sweep; 4/3/2 cores take 90 sweeps
//! over 50,000 states at a load of .7, 180 over 600,000 at .9 ([`Solution::sweeps`]).

mod level;
mod rule;
mod values;

pub use rule::Rule;
pub use values::Values;

use crate::bound::{OutOfBounds, require};
use crate::worker::Worker;
use rule::Choices;

/// Most workers: the states are all combinations of their counts.
pub const MAX_WORKERS: usize = 3;
/// Most states of a box.
pub const MAX_STATES: usize = 6_000_000;
/// Largest spread of E[T] over the inner third of the box, in S, at which the values count as settled.
pub const SPREAD: f64 = 2e-6;

const SWEEPS_PER_CHECK: usize = 10;
const MAX_SWEEPS: usize = 200_000;
/// Checks without a smaller spread after which corrections are given up.
const PATIENCE: usize = 50;
/// The edge of the box is put where a pool at this load is this unlikely to be.
const EDGE_PROBABILITY: f64 = 1e-9;
const LEAST_EDGE: f64 = 10.0;

/// Up to three workers and the rate of arrivals to all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    workers: Vec<Worker>,
    rate: f64,
    /// Counts 0..size at each worker; workers that are not there have size 1.
    sizes: [usize; MAX_WORKERS],
}

/// What a strategy comes out at.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Mean response in units of S.
    pub mean_response: f64,
    /// Relative values, of which the optimum's make a strategy: send where the value after is least.
    pub values: Values,
    /// Sweeps over the box that it took.
    pub sweeps: usize,
}

/// Why there is no solution.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChainError {
    /// An argument is outside its bound.
    #[error(transparent)]
    OutOfBounds(#[from] OutOfBounds),
    /// The strategy leaves the chain without a mean, or nearly so.
    #[error(
        "values did not settle after {sweeps} sweeps (spread of the mean {spread}, needs {SPREAD}); is the strategy stable at this load?"
    )]
    NotSettled {
        /// Sweeps made.
        sweeps: usize,
        /// Spread of E[T] over the inner third of the box.
        spread: f64,
    },
}

impl Chain {
    /// A chain in a box that is large enough for strategies that keep the workers about equally full.
    ///
    /// # Errors
    /// No workers or more than three, a rate outside 0..capacity, more than [`MAX_STATES`] states.
    pub fn try_new(workers: &[Worker], rate: f64) -> Result<Self, OutOfBounds> {
        let capacity = check(workers, rate)?;
        let number = workers.len() as f64;
        let waiting = libm::log(EDGE_PROBABILITY) / libm::log(rate / capacity);
        // Strategies that look at capacity spread the waiting ones by it, others evenly.
        let edge = |w: &Worker| {
            let share = (2.0 * w.capacity() / capacity + 1.0 / number) / 3.0;
            libm::ceil(w.cores() + LEAST_EDGE + waiting * share)
        };
        let edges: Vec<f64> = workers.iter().map(edge).collect();
        Self::with_box(workers, rate, &edges)
    }

    /// A chain with counts up to `edges`, one for each worker.
    ///
    /// # Errors
    /// As [`Chain::try_new`], and edges that are not as many as workers or below 1.
    pub fn with_box(workers: &[Worker], rate: f64, edges: &[f64]) -> Result<Self, OutOfBounds> {
        check(workers, rate)?;
        let is_met = edges.len() == workers.len();
        require(is_met, "edges", edges.len() as f64, "as many as workers")?;
        let mut states = 1.0;
        let mut sizes = [1; MAX_WORKERS];
        for (size, &edge) in sizes.iter_mut().zip(edges) {
            require(edge >= 1.0, "edge of the box", edge, "at least 1")?;
            states *= libm::floor(edge) + 1.0;
            *size = edge as usize + 1;
        }
        let is_met = states <= MAX_STATES as f64;
        require(
            is_met,
            "states (grow with cores and load)",
            states,
            "at most 6000000",
        )?;
        Ok(Self {
            workers: workers.to_vec(),
            rate,
            sizes,
        })
    }

    /// Mean response and relative values of a strategy.
    ///
    /// # Errors
    /// A split that is not one probability for each worker; values that do not settle.
    pub fn solve(&self, rule: &Rule) -> Result<Solution, ChainError> {
        let choices = rule.choices(self)?;
        let mut values = self.first_values();
        let mut number = self.rate;
        let (mut least, mut unimproved) = (f64::INFINITY, 0);
        let mut sweeps = 0;
        loop {
            for _ in 0..SWEEPS_PER_CHECK / 2 {
                self.sweep_forth_and_back(&choices, number, &mut values);
            }
            sweeps += SWEEPS_PER_CHECK;
            let (low, high) = self.inner_means(&choices, &values);
            number = f64::midpoint(low, high);
            let spread = (high - low) / self.rate;
            if spread < SPREAD {
                return Ok(Solution {
                    mean_response: number / self.rate,
                    values: Values::new(self.sizes, self.workers.len(), values),
                    sweeps,
                });
            }
            if sweeps >= MAX_SWEEPS || !spread.is_finite() {
                return Err(ChainError::NotSettled { sweeps, spread });
            }
            unimproved = if spread < least { 0 } else { unimproved + 1 };
            least = least.min(spread);
            if unimproved <= PATIENCE && rule.depends_on_counts() {
                number = self.correct_by_level(&choices, &mut values);
            }
        }
    }

    /// The square of the number in the system, which the value is about in a full pool.
    fn first_values(&self) -> Vec<f64> {
        let spare = self.capacity() - self.rate;
        let mut values = vec![0.0; self.sizes.iter().product()];
        self.each_state(|at, n| {
            let total: usize = n.iter().sum();
            values[at] = (total * total) as f64 / (2.0 * spare);
        });
        values
    }

    /// Two sweeps over the box in place: each value becomes what the equation gives for it.
    fn sweep_forth_and_back(&self, choices: &Choices, number: f64, values: &mut [f64]) {
        self.each_state(|at, n| {
            let (inflow, out) = self.balance(choices, values, at, n);
            values[at] = (inflow - number) / out;
        });
        self.each_state_back(|at, n| {
            let (inflow, out) = self.balance(choices, values, at, n);
            values[at] = (inflow - number) / out;
        });
    }

    /// Least and largest mean number that the equation gives at states of the inner third of the box.
    fn inner_means(&self, choices: &Choices, values: &[f64]) -> (f64, f64) {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        self.each_state(|at, n| {
            if (0..MAX_WORKERS).all(|i| 3 * n[i] < self.sizes[i] + 2) {
                let (inflow, out) = self.balance(choices, values, at, n);
                let number = inflow - out * values[at];
                low = low.min(number);
                high = high.max(number);
            }
        });
        (low, high)
    }

    /// Right side of the equation at a state without the terms of V(n), and the rate that multiplies V(n).
    #[inline]
    fn balance(
        &self,
        choices: &Choices,
        values: &[f64],
        at: usize,
        n: [usize; MAX_WORKERS],
    ) -> (f64, f64) {
        let strides = self.strides();
        let (mut inflow, mut out) = (0.0, 0.0);
        for (i, worker) in self.workers.iter().enumerate() {
            if n[i] > 0 {
                let rate = worker.departure_rate(n[i] as f64);
                inflow += n[i] as f64 + rate * values[at - strides[i]];
                out += rate;
            }
        }
        let (share, value) = choices.after_arrival(self, values, at, n);
        (inflow + self.rate * value, out + self.rate * share)
    }

    fn capacity(&self) -> f64 {
        self.workers.iter().map(Worker::capacity).sum()
    }

    #[inline]
    fn strides(&self) -> [usize; MAX_WORKERS] {
        [1, self.sizes[0], self.sizes[0] * self.sizes[1]]
    }

    /// Calls with the index and the counts of every state, in rising order.
    #[inline]
    fn each_state(&self, mut call: impl FnMut(usize, [usize; MAX_WORKERS])) {
        let mut at = 0;
        for n2 in 0..self.sizes[2] {
            for n1 in 0..self.sizes[1] {
                for n0 in 0..self.sizes[0] {
                    call(at, [n0, n1, n2]);
                    at += 1;
                }
            }
        }
    }

    /// The same in falling order.
    #[inline]
    fn each_state_back(&self, mut call: impl FnMut(usize, [usize; MAX_WORKERS])) {
        let mut at = self.sizes.iter().product();
        for n2 in (0..self.sizes[2]).rev() {
            for n1 in (0..self.sizes[1]).rev() {
                for n0 in (0..self.sizes[0]).rev() {
                    at -= 1;
                    call(at, [n0, n1, n2]);
                }
            }
        }
    }
}

/// The total capacity of workers that a chain can have.
fn check(workers: &[Worker], rate: f64) -> Result<f64, OutOfBounds> {
    let is_met = (1..=MAX_WORKERS).contains(&workers.len());
    require(is_met, "workers", workers.len() as f64, "from 1 to 3")?;
    let capacity: f64 = workers.iter().map(Worker::capacity).sum();
    let is_met = rate > 0.0 && rate < capacity;
    require(is_met, "rate", rate, "above 0 and below the total capacity")?;
    Ok(capacity)
}

#[cfg(test)]
mod tests;

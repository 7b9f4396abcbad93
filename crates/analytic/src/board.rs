//! Choices by a board of counts that is renewed only now and then: the fluid model of infinitely many
//! equal single-core workers (Mitzenmacher 2000, "How useful is old information?").
//!
//! Between two renewals a worker's arrivals depend only on the count the board shows for it, so workers
//! of one count are one M/M/1 queue that starts there, and their mix at the end is the next board.

use crate::bound::{OutOfBounds, require, require_load};

/// Most sampled workers.
pub const MAX_CHOICES: u32 = 10;
/// Longest interval, in S.
pub const MAX_INTERVAL: f64 = 100.0;
/// Highest load; above it the fixed cycle takes too many phases to reach.
pub const MAX_LOAD: f64 = 0.99;

/// Counts 0..60 hold everything at intervals of about 1; longer ones pile up more.
const LEAST_LEVELS: f64 = 60.0;
/// A class of workers of a smaller share changes no digit.
const NEGLIGIBLE: f64 = 1e-16;
/// The cycle is fixed once no share changes by more from board to board.
const SETTLED: f64 = 1e-12;
const MAX_PHASES: usize = 100_000;
/// More than this share at the highest count would mean that the levels cut something off.
const MAX_AT_TOP: f64 = 1e-9;

/// Mean response in units of S when each arrival samples `d` workers (with replacement; for infinitely
/// many it is the same) and joins the one with the lowest count on a board that is renewed for all at
/// once every `interval`: p_i the share of workers with board value i, s_i its tails; each of them gets
/// arrivals at r_i = load*(s_i^d - s_{i+1}^d)/p_i. Iterated to the fixed cycle; the mean number over a
/// phase, over the load.
///
/// # Errors
/// A load outside 0..=[`MAX_LOAD`], `d` outside 1..=[`MAX_CHOICES`], an interval not above 0 or above
/// [`MAX_INTERVAL`]; a cycle that does not settle.
pub fn mean_response(d: u32, load: f64, interval: f64) -> Result<f64, OutOfBounds> {
    require_load(load)?;
    require(load <= MAX_LOAD, "load", load, "at most 0.99")?;
    let is_met = (1..=MAX_CHOICES).contains(&d);
    require(is_met, "choices", f64::from(d), "from 1 to 10")?;
    let is_met = interval > 0.0 && interval <= MAX_INTERVAL;
    require(is_met, "interval", interval, "above 0 and at most 100")?;
    let mut shares = live_counts(d, load, levels(d, load, interval));
    for _ in 0..MAX_PHASES {
        let phase = Phase::run(&shares, d, load, interval);
        let change = shares.iter().zip(&phase.shares);
        let change = change.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        shares = phase.shares;
        if change < SETTLED {
            let at_top = shares.last().copied().unwrap_or(0.0);
            require(
                at_top < MAX_AT_TOP,
                "share at the highest count",
                at_top,
                "below 1e-9",
            )?;
            return Ok(phase.mean_number / load);
        }
    }
    require(
        false,
        "phases to a fixed cycle",
        MAX_PHASES as f64,
        "below 100000",
    )?;
    Ok(f64::NAN)
}

/// How many counts are kept: the geometric tail of a random split, or what one phase can pile up.
fn levels(d: u32, load: f64, interval: f64) -> usize {
    let random_tail = 28.0 / -libm::log(load);
    let sent = f64::from(d) * load * interval;
    let piled_up = sent + 6.0 * libm::sqrt(sent);
    let top = if d == 1 { random_tail } else { piled_up };
    (LEAST_LEVELS + top) as usize
}

/// Shares under live counts, a start near every fixed cycle: tails load^((d^i - 1)/(d - 1)).
fn live_counts(d: u32, load: f64, levels: usize) -> Vec<f64> {
    let mut tails = Vec::with_capacity(levels + 1);
    let mut exponent = 0.0;
    for _ in 0..levels {
        tails.push(libm::pow(load, exponent));
        exponent = f64::from(d) * exponent + 1.0;
    }
    tails.push(0.0);
    tails.windows(2).map(|w| w[0] - w[1]).collect()
}

/// One interval between two boards.
struct Phase {
    /// Shares of workers by count at its end.
    shares: Vec<f64>,
    /// Mean number at a worker, averaged over the phase.
    mean_number: f64,
}

impl Phase {
    fn run(board: &[f64], d: u32, load: f64, interval: f64) -> Self {
        let mut phase = Self {
            shares: vec![0.0; board.len()],
            mean_number: 0.0,
        };
        let to_the_d = |tail: f64| (0..d).fold(1.0, |power, _| power * tail);
        // Tails are summed from the top, so that small ones keep their digits.
        let mut tails = vec![0.0; board.len() + 1];
        for i in (0..board.len()).rev() {
            tails[i] = tails[i + 1] + board[i];
        }
        for (start, &share) in board.iter().enumerate() {
            if share > NEGLIGIBLE {
                let sent = to_the_d(tails[start]) - to_the_d(tails[start + 1]);
                let arrivals = load * sent / share;
                phase.mean_number +=
                    share * transient(start, arrivals, interval, share, &mut phase.shares);
            }
        }
        let sum: f64 = phase.shares.iter().sum();
        phase.shares.iter_mut().for_each(|p| *p /= sum);
        phase
    }
}

/// An M/M/1 queue that starts at `start`: adds `share` times its law after `interval` to `out` and
/// returns its mean number over the interval. Uniformization: with q = arrivals + 1, the law at t is
/// sum_k Poisson(k; q*t) * P^k, and its integral sum_k P(Poisson(q*t) > k)/q * P^k.
fn transient(start: usize, arrivals: f64, interval: f64, share: f64, out: &mut [f64]) -> f64 {
    let top = out.len() - 1;
    let (up, down) = (arrivals / (arrivals + 1.0), 1.0 / (arrivals + 1.0));
    let jumps = (arrivals + 1.0) * interval;
    let terms = (jumps + 10.0 * libm::sqrt(jumps) + 30.0) as usize;
    let mut law = vec![0.0; out.len()];
    let mut next = law.clone();
    law[start] = 1.0;
    let mut log_poisson = -jumps;
    let mut beyond = 1.0;
    let mut number = 0.0;
    for k in 0..terms {
        let poisson = libm::exp(log_poisson);
        beyond = f64::max(beyond - poisson, 0.0);
        let (mut mean, reach) = (0.0, (start + k).min(top));
        for n in 0..=reach {
            out[n] += share * poisson * law[n];
            mean += n as f64 * law[n];
        }
        number += beyond * mean;
        log_poisson += libm::log(jumps / (k + 1) as f64);
        next[..=(reach + 1).min(top)].fill(0.0);
        for n in 0..=reach {
            next[(n + 1).min(top)] += up * law[n];
            next[n.saturating_sub(1)] += down * law[n];
        }
        std::mem::swap(&mut law, &mut next);
    }
    number / jumps
}

#[cfg(test)]
mod tests {
    use super::{mean_response, transient};
    use crate::choices;

    #[test]
    fn known_values_come_out() {
        for (d, interval, expected) in [(2, 1.0, 2.936), (2, 10.0, 5.059), (3, 1.0, 2.559)] {
            let got = mean_response(d, 0.9, interval).unwrap();
            assert!((got - expected).abs() < 6e-4, "d {d} T {interval}: {got}");
        }
    }

    #[test]
    fn a_single_choice_is_m_m_1_however_old_the_board() {
        for interval in [0.5, 5.0, 50.0] {
            let got = mean_response(1, 0.8, interval).unwrap();
            assert!((got - 5.0).abs() < 1e-6, "{interval}: {got}");
        }
    }

    #[test]
    fn a_fresh_board_is_live_counts_and_an_older_one_is_worse() {
        for d in [2, 3] {
            let live = choices::mean_response(d, 0.7).unwrap();
            let fresh = mean_response(d, 0.7, 0.001).unwrap();
            assert!((fresh / live - 1.0).abs() < 2e-3, "{fresh} {live}");
            let at = |interval| mean_response(d, 0.7, interval).unwrap();
            assert!(fresh < at(0.1) && at(0.1) < at(1.0) && at(1.0) < at(10.0));
        }
    }

    /// The transient against plain Euler steps of the same equations.
    #[test]
    fn the_transient_agrees_with_small_steps() {
        let (start, arrivals, interval) = (3, 1.7, 2.0);
        let mut law = vec![0.0; 60];
        let number = transient(start, arrivals, interval, 1.0, &mut law);
        let steps = 200_000;
        let dt = interval / f64::from(steps);
        let mut euler = vec![0.0; 60];
        euler[start] = 1.0;
        let mut integral = 0.0;
        for _ in 0..steps {
            let was = euler.clone();
            for n in 0..60 {
                integral += n as f64 * was[n] * dt / interval;
                let mut flow = if n < 59 {
                    -arrivals * was[n] + was[n + 1]
                } else {
                    0.0
                };
                if n > 0 {
                    flow += arrivals * was[n - 1] - was[n];
                }
                euler[n] += flow * dt;
            }
        }
        assert!((number - integral).abs() < 1e-4, "{number} {integral}");
        let worst = law
            .iter()
            .zip(&euler)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert!(worst < 1e-4, "{worst}");
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn arguments_outside_their_bounds_are_named() {
        let said = |e: crate::OutOfBounds| e.to_string();
        assert!(said(mean_response(2, 0.9, 0.0).unwrap_err()).contains("interval"));
        assert!(said(mean_response(0, 0.9, 1.0).unwrap_err()).contains("choices"));
        assert!(said(mean_response(2, 0.995, 1.0).unwrap_err()).contains("at most 0.99"));
    }
}

//! Random splits: every request goes to worker i with probability p_i, whatever the state.
//!
//! Each worker then is a station of its own, so every mean here holds for any law of sizes.

use crate::bound::{LEAST_LOAD, OutOfBounds, require, require_positive, require_share};
use crate::root::bisect;
use crate::worker::{MAX_CORES, Worker};

/// A split and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Probability of each worker; they sum to 1.
    pub shares: Vec<f64>,
    /// Mean response in units of S.
    pub mean_response: f64,
}

/// Mean response in units of S when requests at `rate` are split by `shares`:
/// sum over workers of share*E[T of that worker].
///
/// # Errors
/// Shares that are not probabilities or as many as workers; a worker at or above its capacity.
pub fn mean_response(workers: &[Worker], shares: &[f64], rate: f64) -> Result<f64, OutOfBounds> {
    check(workers, rate)?;
    let number = shares.len() as f64;
    require(
        shares.len() == workers.len(),
        "shares",
        number,
        "as many as workers",
    )?;
    let sum: f64 = shares.iter().sum();
    require((sum - 1.0).abs() < 1e-9, "sum of the shares", sum, "1")?;
    let mut mean = 0.0;
    for (worker, &share) in workers.iter().zip(shares) {
        require_share("share", share)?;
        if share > 0.0 {
            mean += share * worker.mean_response(share * rate)?;
        }
    }
    Ok(mean)
}

/// The split in proportion to capacity.
pub fn proportional(workers: &[Worker]) -> Vec<f64> {
    let total: f64 = workers.iter().map(Worker::capacity).sum();
    workers.iter().map(|w| w.capacity() / total).collect()
}

/// The best random split of requests at `rate` over single-core workers of rates `mu` (Bell and Stidham
/// 1983): over the k fastest, lambda_i = mu_i - sqrt(mu_i)*(sum mu - lambda)/sum sqrt(mu), k the
/// largest with all lambda_i > 0.
///
/// # Errors
/// A rate not below the sum of `mu` or below a billionth of it; a `mu` outside 1e-9..=1e9.
pub fn bell_stidham(mu: &[f64], rate: f64) -> Result<Split, OutOfBounds> {
    for &m in mu {
        require_positive("service rate", m)?;
    }
    require_below_capacity(rate, mu.iter().sum())?;
    let mut order: Vec<usize> = (0..mu.len()).collect();
    order.sort_by(|&a, &b| mu[b].total_cmp(&mu[a]));
    let mut shares = vec![0.0; mu.len()];
    let mut mean_response = 0.0;
    for k in (1..=mu.len()).rev() {
        let used = &order[..k];
        let spare = used.iter().map(|&i| mu[i]).sum::<f64>() - rate;
        let roots: f64 = used.iter().map(|&i| libm::sqrt(mu[i])).sum();
        let left = |i: usize| libm::sqrt(mu[i]) * spare / roots;
        let lambda = |i: usize| mu[i] - left(i);
        if used.iter().all(|&i| lambda(i) > 0.0) {
            // The rates add up to the whole but for rounding, which weighs at a small rate.
            let sum: f64 = used.iter().map(|&i| lambda(i)).sum();
            for &i in used {
                shares[i] = lambda(i) / sum;
                mean_response += shares[i] / left(i);
            }
            break;
        }
    }
    Ok(Split {
        shares,
        mean_response,
    })
}

/// The best random split of requests at `rate`: the shares that minimize sum lambda_i*E[T_i]. At the
/// optimum every used worker has the same marginal cost d(lambda*E[T])/d lambda and no unused one a
/// lower (Karush, Kuhn and Tucker); nested bisection finds it, since the cost of each worker is convex.
///
/// # Errors
/// A rate not below the total capacity or below a billionth of it; no workers, or more than [`MAX_CORES`] cores in
/// total.
pub fn best(workers: &[Worker], rate: f64) -> Result<Split, OutOfBounds> {
    check(workers, rate)?;
    let idle_cost = |w: &Worker| 1.0 / w.departure_rate(1.0);
    let least = workers.iter().map(idle_cost).fold(f64::INFINITY, f64::min);
    let placed = |cost: f64| workers.iter().map(|w| rate_at(w, cost)).sum::<f64>();
    let mut high = 2.0 * least;
    while placed(high) < rate {
        high *= 2.0;
    }
    let cost = bisect(least, high, |cost| placed(cost) >= rate);
    let rates: Vec<f64> = workers.iter().map(|w| rate_at(w, cost)).collect();
    // What the last bit of the common cost leaves over is spread in proportion.
    let sum: f64 = rates.iter().sum();
    let shares: Vec<f64> = rates.iter().map(|r| r / sum).collect();
    let solved = of(workers, shares, rate)?;
    // Workers of hundreds of cores have marginal costs that are equal to the last bit over a wide range,
    // so that the common cost says little; capacity then says more.
    match of(workers, proportional(workers), rate) {
        Ok(simple) if simple.mean_response < solved.mean_response => Ok(simple),
        _ => Ok(solved),
    }
}

fn of(workers: &[Worker], shares: Vec<f64>, rate: f64) -> Result<Split, OutOfBounds> {
    Ok(Split {
        mean_response: mean_response(workers, &shares, rate)?,
        shares,
    })
}

/// The rate at which a worker's marginal cost reaches `cost`; 0 if it starts above.
fn rate_at(worker: &Worker, cost: f64) -> f64 {
    bisect(0.0, worker.capacity(), |rate| {
        worker.marginal_cost(rate).map_or(true, |c| c >= cost)
    })
}

fn check(workers: &[Worker], rate: f64) -> Result<(), OutOfBounds> {
    let number = workers.len() as f64;
    require(!workers.is_empty(), "workers", number, "at least 1")?;
    let cores: f64 = workers.iter().map(Worker::cores).sum();
    require(
        cores <= MAX_CORES,
        "cores in total",
        cores,
        "at most 100000",
    )?;
    require_below_capacity(rate, workers.iter().map(Worker::capacity).sum())
}

fn require_below_capacity(rate: f64, capacity: f64) -> Result<(), OutOfBounds> {
    require(
        rate >= LEAST_LOAD * capacity && rate < capacity,
        "rate",
        rate,
        "from a billionth of the total capacity to below the total capacity",
    )
}

#[cfg(test)]
mod tests;

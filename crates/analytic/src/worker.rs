//! One worker alone: the M/G/c processor-sharing station, for whole and fractional c.
//!
//! The number of requests there is a birth-death process with death rate s*min(n, c), whatever the law
//! of the sizes (insensitivity of processor sharing; Kelly 1979), and the mean response of a request of
//! size x is x times that of a mean request. Whole c is also the M/M/c queue with exponential sizes,
//! first come first served: Erlang's C formula (1917).

use crate::bound::{LEAST_LOAD, OutOfBounds, require, require_load, require_positive};

/// Most cores of one worker; every sum over its states has so many terms.
pub const MAX_CORES: f64 = 100_000.0;

/// A processor-sharing machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worker {
    cores: f64,
    speed: f64,
}

/// Mean and variance of the number of requests at a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Mean number, the waiting ones counted.
    pub mean: f64,
    /// Variance of the number.
    pub variance: f64,
}

impl Worker {
    /// A worker of `cores` cores (fractions allowed), each of `speed`; speed 1 serves a mean request
    /// in S.
    ///
    /// # Errors
    /// Cores outside 1e-9..=[`MAX_CORES`], a speed outside 1e-9..=1e9.
    pub fn try_new(cores: f64, speed: f64) -> Result<Self, OutOfBounds> {
        let is_met = (1e-9..=MAX_CORES).contains(&cores);
        require(is_met, "cores", cores, "from 1e-9 to 100000")?;
        require_positive("speed", speed)?;
        Ok(Self { cores, speed })
    }

    /// Its cores.
    pub fn cores(&self) -> f64 {
        self.cores
    }

    /// The speed of one of them.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Requests per S it can serve at most: c*s.
    pub fn capacity(&self) -> f64 {
        self.cores * self.speed
    }

    /// Requests per S it serves while it holds `n`: s*min(n, c).
    pub fn departure_rate(&self, n: f64) -> f64 {
        self.speed * n.min(self.cores)
    }

    /// Probability of 0, 1, .. `levels` - 1 requests under Poisson arrivals at `rate`:
    /// p_n ~ prod_{i<=n} rate/(s*min(i, c)).
    ///
    /// # Errors
    /// A rate that is not below its capacity.
    pub fn probabilities(&self, rate: f64, levels: usize) -> Result<Vec<f64>, OutOfBounds> {
        let sums = self.sums(rate, 0.0)?;
        let mut log_p = -libm::log(sums.weight) - sums.log_scale;
        Ok((1..=levels)
            .map(|n| {
                let probability = libm::exp(log_p);
                log_p += libm::log(rate / self.departure_rate(n as f64));
                probability
            })
            .collect())
    }

    /// Mean and variance of the number of requests under Poisson arrivals at `rate`.
    ///
    /// # Errors
    /// A rate that is not below its capacity.
    pub fn moments(&self, rate: f64) -> Result<Moments, OutOfBounds> {
        let first = self.sums(rate, 0.0)?;
        let mean = first.first / first.weight;
        let centered = self.sums(rate, mean)?;
        Ok(Moments {
            mean,
            variance: centered.second / centered.weight,
        })
    }

    /// Mean response time in units of S under Poisson arrivals at `rate` (0: a lone request), for any
    /// law of sizes with mean S: E[N]/rate.
    ///
    /// # Errors
    /// A rate that is not below its capacity.
    pub fn mean_response(&self, rate: f64) -> Result<f64, OutOfBounds> {
        // So rarely visited, a request is alone but for one case in a billion.
        if (0.0..LEAST_LOAD * self.capacity()).contains(&rate) {
            return Ok(1.0 / self.departure_rate(1.0));
        }
        Ok(self.moments(rate)?.mean / rate)
    }

    /// What one more request per S costs everybody, d(rate*E[T])/d rate. The probabilities are an
    /// exponential family in log rate, so it is Var(N)/rate.
    pub(crate) fn marginal_cost(&self, rate: f64) -> Result<f64, OutOfBounds> {
        if (0.0..LEAST_LOAD * self.capacity()).contains(&rate) {
            return self.mean_response(rate);
        }
        Ok(self.moments(rate)?.variance / rate)
    }

    /// Sums of weight, (n - center)*weight and (n - center)^2*weight over all states; the geometric
    /// tail beyond the cores in closed form.
    fn sums(&self, rate: f64, center: f64) -> Result<Sums, OutOfBounds> {
        require(
            rate > 0.0 && rate < self.capacity(),
            "rate",
            rate,
            "above 0 and below the worker's capacity",
        )?;
        let mut sums = Sums::default();
        let full = libm::ceil(self.cores) as usize;
        let mut weight = 1.0;
        sums.add(weight, -center);
        for n in 1..=full {
            weight *= rate / self.departure_rate(n as f64);
            if weight > Sums::RESCALE_ABOVE {
                sums.scale_down(weight);
                weight = 1.0;
            }
            sums.add(weight, n as f64 - center);
        }
        // Beyond the cores each state is r times the one before: sums of j^k*r^j over j >= 1.
        let r = rate / self.capacity();
        let (zeroth, first) = (r / (1.0 - r), r / (1.0 - r) / (1.0 - r));
        let second = first * (1.0 + r) / (1.0 - r);
        let at = full as f64 - center;
        sums.weight += weight * zeroth;
        sums.first += weight * (at * zeroth + first);
        sums.second += weight * (at * at * zeroth + 2.0 * at * first + second);
        Ok(sums)
    }
}

#[derive(Debug, Default)]
struct Sums {
    weight: f64,
    first: f64,
    second: f64,
    /// Logarithm of what all were divided by.
    log_scale: f64,
}

impl Sums {
    /// Weights grow like e^(offered work); a large pool would overflow.
    const RESCALE_ABOVE: f64 = 1e100;

    fn add(&mut self, weight: f64, n: f64) {
        self.weight += weight;
        self.first += weight * n;
        self.second += weight * n * n;
    }

    fn scale_down(&mut self, by: f64) {
        self.weight /= by;
        self.first /= by;
        self.second /= by;
        self.log_scale += libm::log(by);
    }
}

/// Erlang's C: the probability that all of `cores` cores are busy when `offered` = rate*S work is
/// offered. C = A/(B+A), A = a^c/c! * c/(c-a), B = sum_{k<c} a^k/k!, computed by the recursion of the
/// blocking probability, which neither over- nor underflows.
///
/// # Errors
/// No cores, more than [`MAX_CORES`], or offered work outside 0..cores.
pub fn erlang_c(cores: u32, offered: f64) -> Result<f64, OutOfBounds> {
    let c = f64::from(cores);
    let is_met = cores >= 1 && c <= MAX_CORES;
    require(is_met, "cores", c, "from 1 to 100000")?;
    let is_met = offered > 0.0 && offered < c;
    require(
        is_met,
        "offered work",
        offered,
        "above 0 and below the cores",
    )?;
    let blocking = (1..=cores).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b));
    let load = offered / c;
    Ok(blocking / (1.0 - load * (1.0 - blocking)))
}

/// Mean response in units of S of a station of `cores` cores of speed 1 at `load`:
/// 1 + C/(c(1 - load)). For processor sharing it holds for every law of sizes, for first come first
/// served with exponential ones.
///
/// # Errors
/// A load outside 0..1, cores outside 1..=[`MAX_CORES`].
pub fn station_mean_response(cores: u32, load: f64) -> Result<f64, OutOfBounds> {
    require_load(load)?;
    let c = f64::from(cores);
    Ok(1.0 + erlang_c(cores, c * load)? / (c * (1.0 - load)))
}

#[cfg(test)]
mod tests;

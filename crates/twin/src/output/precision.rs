//! How long to run: until the interval is narrow enough.

use super::batches::Estimate;

/// Normal quantile of a 95 % interval.
const Z: f64 = 1.96;
/// What an M/M/1 plan may ask for at most.
const MOST_PLANNED: f64 = 1e15;

/// Arrivals after which the mean of an M/M/1 queue is known to `relative`:
/// 2(1 + load)*1.96^2/((1 - load)^2*relative^2) (Whitt 1989). A plan for other systems, good to a factor.
pub fn planned_arrivals(load: f64, relative: f64) -> u64 {
    let spare = (1.0 - load) * relative;
    (2.0 * (1.0 + load) * Z * Z / (spare * spare)).min(MOST_PLANNED) as u64
}

/// Whether an estimate is known to `relative`: half-width over value at most that, and no correlation
/// left that would make the interval too narrow.
pub fn is_reached(estimate: &Estimate, relative: f64) -> bool {
    let known = |half_width: f64| half_width <= relative * estimate.value.abs();
    !estimate.is_correlated && estimate.half_width.is_some_and(known)
}

/// Doubles a run from `first` requests until its estimate is known to `relative`, at most up to `most`
/// requests. Gives the last run and whether the precision was reached.
///
/// # Errors
/// Those of a run.
pub fn double_until<T, E>(
    first: u64,
    most: u64,
    relative: f64,
    mut run: impl FnMut(u64) -> Result<(T, Option<Estimate>), E>,
) -> Result<(T, bool), E> {
    let mut requests = first.clamp(1, most.max(1));
    loop {
        let (result, estimate) = run(requests)?;
        let reached = estimate.is_some_and(|e| is_reached(&e, relative));
        if reached || requests >= most {
            return Ok((result, reached));
        }
        requests = requests.saturating_mul(2).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::{double_until, planned_arrivals};
    use crate::output::batches::Estimate;

    #[test]
    fn a_percent_takes_a_million_and_a_half_at_7_tenths() {
        assert!((1_450_000..1_460_000).contains(&planned_arrivals(0.7, 0.01)));
        assert!((14_000_000..15_000_000).contains(&planned_arrivals(0.9, 0.01)));
        assert_eq!(planned_arrivals(1.0, 0.01), 1_000_000_000_000_000);
    }

    /// A run whose error falls with the square root of its length.
    fn sampled(requests: u64) -> Result<(u64, Option<Estimate>), ()> {
        let half_width = 100.0 / (requests as f64).sqrt();
        let estimate = Estimate {
            value: 10.0,
            standard_error: Some(half_width / 2.0),
            half_width: Some(half_width),
            is_correlated: requests < 2_000,
        };
        Ok((requests, Some(estimate)))
    }

    #[test]
    fn a_run_is_doubled_until_it_is_precise_or_long_enough() {
        // Half-width 1 % of 10 at 1e6 requests.
        let reached = double_until(100_000, u64::MAX, 0.01, sampled);
        assert_eq!(reached, Ok((1_600_000, true)));
        assert_eq!(
            double_until(100_000, 300_000, 0.01, sampled),
            Ok((300_000, false))
        );
        // Precise enough at once, but correlated up to 2,000.
        assert_eq!(
            double_until(500, 1_000_000, 1.0, sampled),
            Ok((2_000, true))
        );
    }
}

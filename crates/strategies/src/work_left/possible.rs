//! Needs that are still possible: drawn from a log-normal law around a class's mean, among those that
//! exceed what a job attained.
//!
//! Under processor sharing a balancer that sees every request knows exactly what each one attained, so a
//! price averaged over such draws is what all its knowledge is worth (Bayes' rule), up to the chance of the
//! draws: a yardstick for the price of the means, at some hundred times its cost.

use crate::strategy::Rng;
use schema::rng::normal;

/// Draws that may fall short of what was attained.
const TRIES: u32 = 100;

/// One need of a class of this mean (core-ms) and log-standard deviation, less what was attained; `else_ms`
/// if it is all but certain that nothing is left.
pub(crate) fn draw_left_ms(
    mean_ms: f64,
    spread: f64,
    attained_ms: f64,
    else_ms: f64,
    rng: &mut Rng,
) -> f64 {
    for _ in 0..TRIES {
        let need_ms = draw_ms(mean_ms, spread, rng);
        if need_ms > attained_ms {
            return need_ms - attained_ms;
        }
    }
    else_ms
}

/// One need, core-ms.
pub(crate) fn draw_ms(mean_ms: f64, spread: f64, rng: &mut Rng) -> f64 {
    mean_ms * libm::exp(spread * normal(rng) - 0.5 * spread * spread)
}

#[cfg(test)]
mod tests {
    use super::{draw_left_ms, draw_ms};
    use schema::rng::{Purpose, stream};

    /// E\[X - x | X > x\] of a log-normal X of mean 1: a ratio of two normal tails.
    fn mean_left(x: f64, spread: f64) -> f64 {
        let above = |z: f64| 0.5 * libm::erfc(z / std::f64::consts::SQRT_2);
        let z = libm::log(x) / spread + 0.5 * spread;
        above(z - spread) / above(z) - x
    }

    #[test]
    fn draws_have_the_mean_of_what_is_left() {
        let mut rng = stream(8, Purpose::Strategy, 0, 0);
        let draws = 100_000;
        for (spread, attained) in [(0.2, 0.5), (0.2, 1.0), (0.2, 1.3), (0.8, 1.0), (0.8, 2.5)] {
            let left =
                (0..draws).map(|_| draw_left_ms(10.0, spread, 10.0 * attained, 0.0, &mut rng));
            let got = left.sum::<f64>() / f64::from(draws) / 10.0;
            let want = mean_left(attained, spread);
            assert!(
                (got / want - 1.0).abs() < 0.03,
                "{spread} {attained}: {got} {want}"
            );
        }
        let sum: f64 = (0..draws).map(|_| draw_ms(10.0, 0.5, &mut rng)).sum();
        assert!((sum / f64::from(draws) / 10.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn who_cannot_be_there_any_more_has_the_other_left() {
        let mut rng = stream(8, Purpose::Strategy, 0, 0);
        assert_eq!(draw_left_ms(10.0, 0.1, 100.0, 1.5, &mut rng), 1.5);
    }
}

//! What paired runs allow to say, and a mean of few runs with its interval.
//!
//! The unit is one run; a pair is a strategy's run and the baseline's under the same requests (one
//! block of the testbed, one seed of the twin). A sign-flip test gives the p value, Holm corrects for
//! the number of comparisons. Cost: the test walks 2^m patterns for m pairs. The analysis package
//! computes the same figures independently from the rows. Pure: numbers in, numbers out.

#![warn(missing_docs)]

mod interval;
mod sum;

pub use interval::{Interval, student, welch};
pub use sum::Sum;

use rand_core::RngCore as _;
use schema::rng::{Purpose, stream};

/// A claim needs an adjusted p below this.
pub const ALPHA: f64 = 0.05;
/// Up to 2^16 sign patterns are walked; above that they are drawn.
const EXACT_BLOCKS: usize = 16;
const DRAWN_PATTERNS: u32 = 100_000;

/// Two-sided p of the hypothesis that every difference is as likely to have the other sign.
///
/// Exact over all 2^m patterns up to 16 values, so the smallest p is 2^(1-m); drawn from a fixed
/// seed above that, with the observed pattern counted. NaN without values.
pub fn sign_flip(values: &[f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let observed = values.iter().sum::<f64>().abs();
    let scale: f64 = values.iter().map(|v| v.abs()).sum();
    // Equal up to rounding counts as equal: the mirrored pattern must never be missed.
    let bound = observed - 1e-12 * scale.max(1e-300);
    // Bit i of the words turns value i around.
    let reaches = |signs: &[u64]| {
        let flipped = values.iter().enumerate().map(|(i, v)| {
            let is_flipped = signs[i / 64] >> (i % 64) & 1 == 1;
            if is_flipped { -v } else { *v }
        });
        flipped.sum::<f64>().abs() >= bound
    };
    if values.len() <= EXACT_BLOCKS {
        let patterns = 1_u64 << values.len();
        let hits = (0..patterns).filter(|&signs| reaches(&[signs])).count();
        return hits as f64 / patterns as f64;
    }
    let mut rng = stream(0, Purpose::BlockOrder, 1, 0);
    let mut signs = vec![0; values.len().div_ceil(64)];
    let mut reaches_drawn = || {
        signs.fill_with(|| rng.next_u64());
        reaches(&signs)
    };
    let hits = (0..DRAWN_PATTERNS).filter(|_| reaches_drawn()).count();
    (1 + hits) as f64 / (1 + DRAWN_PATTERNS) as f64
}

/// Holm's step-down adjustment, in the given order; NaN stays NaN and is not counted.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut places: Vec<usize> = (0..p_values.len())
        .filter(|&i| !p_values[i].is_nan())
        .collect();
    places.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let mut running = 0.0_f64;
    for (rank, &place) in places.iter().enumerate() {
        running = running.max(((places.len() - rank) as f64 * p_values[place]).min(1.0));
        adjusted[place] = running;
    }
    adjusted
}

/// Fewest blocks with which `comparisons` claims can all be made: 2^(1-m) <= .05/k, m >= 6.
pub fn blocks_needed(comparisons: usize) -> u32 {
    let bound = ALPHA / comparisons.max(1) as f64;
    (6..64)
        .find(|&m| 2.0_f64.powi(1 - m) <= bound)
        .map_or(64, |m| m as u32)
}

#[cfg(test)]
mod tests;

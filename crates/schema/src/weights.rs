//! Weights of backends from what they can do.

use crate::scenario::WEIGHT;

const MAX_WEIGHT: f64 = *WEIGHT.end();

/// The smallest integers in the same proportion as positive numbers; rounded to the largest weight if
/// there are none.
pub fn smallest_integers(values: &[f64]) -> Vec<u32> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let near = |x: f64| (x - x.round()).abs() < 1e-9 * x.max(1.0);
    for k in 1..=1000_u32 {
        let scale = f64::from(k) / least;
        if most * scale > MAX_WEIGHT {
            break;
        }
        if values.iter().all(|v| near(v * scale)) {
            return values.iter().map(|v| (v * scale).round() as u32).collect();
        }
    }
    let scale = MAX_WEIGHT / most;
    values
        .iter()
        .map(|v| (v * scale).round().max(1.0) as u32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::smallest_integers;

    #[test]
    fn weights_are_the_smallest_integers_in_proportion() {
        assert_eq!(smallest_integers(&[4.0, 3.0, 2.0]), [4, 3, 2]);
        assert_eq!(smallest_integers(&[0.8, 0.6, 0.4]), [4, 3, 2]);
        assert_eq!(smallest_integers(&[4.0, 3.0 * 0.5, 2.0]), [8, 3, 4]);
        assert_eq!(smallest_integers(&[6.0; 5]), [1; 5]);
        assert_eq!(
            smallest_integers(&[1.0, std::f64::consts::SQRT_2]),
            [46_340, 65_535]
        );
        assert_eq!(smallest_integers(&[1e-3, 1e6]), [1, 65_535]);
    }
}

//! One first-come-first-served core under general sizes: Pollaczek and Khinchine.

use crate::bound::{OutOfBounds, require, require_load};

/// Mean response in units of S of M/G/1, first come first served: 1 + load*(1 + scv)/(2(1 - load)),
/// `scv` the squared coefficient of variation of the sizes (0 constant, 1 exponential).
///
/// # Errors
/// A load outside 0..1, an scv outside 0..=1e9.
pub fn mean_response(load: f64, scv: f64) -> Result<f64, OutOfBounds> {
    require_load(load)?;
    let is_met = (0.0..=1e9).contains(&scv);
    require(
        is_met,
        "squared coefficient of variation",
        scv,
        "from 0 to 1e9",
    )?;
    Ok(1.0 + load * (1.0 + scv) / (2.0 * (1.0 - load)))
}

#[cfg(test)]
mod tests {
    use super::mean_response;

    #[test]
    fn exponential_sizes_give_the_m_m_1_queue_and_known_values_come_out() {
        assert!((mean_response(0.8, 0.0).unwrap() - 3.0).abs() < 1e-12);
        assert!((mean_response(0.8, 10.0).unwrap() - 23.0).abs() < 1e-12);
        for load in [0.1, 0.5, 0.9, 0.99] {
            let m_m_1 = 1.0 / (1.0 - load);
            assert!((mean_response(load, 1.0).unwrap() / m_m_1 - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn arguments_outside_their_bounds_are_named() {
        let said = mean_response(1.0, 1.0).unwrap_err().to_string();
        assert_eq!(said, "load must be above 0 and below 1, got 1");
        assert!(mean_response(0.5, -1.0).is_err());
        assert!(mean_response(f64::NAN, 1.0).is_err());
    }
}

//! Known values: tables of Student's t, and results of scipy 1.14 where the case says so.

use super::{quantile, slope_t, student, welch};

fn close(got: f64, expected: f64) {
    assert!(
        (got - expected).abs() <= 1e-6 * expected.abs().max(1.0),
        "got {got}, expected {expected}"
    );
}

#[test]
fn student_bounds_are_those_of_the_tables() {
    // t(.975; 4) = 2.776445, s = sqrt(2.5), so the reach is 2.776445 * sqrt(2.5 / 5).
    let interval = student(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    close(interval.point, 3.0);
    close(interval.high - 3.0, 2.776_445_105 * 0.5_f64.sqrt());
    close(3.0 - interval.low, 2.776_445_105 * 0.5_f64.sqrt());
}

#[test]
fn one_value_has_a_mean_and_no_bounds() {
    let interval = student(&[7.0]);
    close(interval.point, 7.0);
    assert!(!interval.has_bounds());
    assert!(student(&[]).point.is_nan());
}

#[test]
fn welch_uses_the_fractional_degrees_of_freedom() {
    // va = 1/3, vb = 4/3: df = (5/3)^2 / ((1/9)/2 + (16/9)/2) = 2.941176.
    let interval = welch(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]);
    close(interval.point, 2.0);
    // t(.975; 2.941176) = 3.2186 (between t(2) = 4.3027 and t(3) = 3.1824).
    let t = (interval.high - 2.0) / (5.0_f64 / 3.0).sqrt();
    assert!((3.1824..3.4).contains(&t), "{t}");
}

#[test]
fn quantiles_interpolate_between_neighbors() {
    let sorted = [1.0, 2.0, 3.0, 4.0];
    close(quantile(&sorted, 0.5), 2.5);
    close(quantile(&sorted, 0.95), 3.85);
    close(quantile(&sorted, 1.0), 4.0);
    close(quantile(&[5.0], 0.99), 5.0);
    assert!(quantile(&[], 0.5).is_nan());
}

#[test]
fn the_slope_of_a_noisy_line_is_significant_and_of_a_flat_one_is_not() {
    // scipy.stats.linregress([0,1,2,3], [1,3,2,5]): slope 1.1, stderr 0.3*sqrt(5) = 0.5196152.
    close(slope_t(&[1.0, 3.0, 2.0, 5.0]), 1.1 / 0.519_615_242);
    close(slope_t(&[2.0, 2.0, 2.0]), 0.0);
    assert!(slope_t(&[1.0, 2.0, 3.0]) > 1e6);
}

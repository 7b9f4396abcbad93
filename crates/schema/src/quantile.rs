//! Quantiles of a sorted list.

/// Quantile `q`, from 0 to 1, of sorted values: linear between the two order statistics around it (type 7
/// of Hyndman & Fan 1996, which NumPy and R take unless told otherwise); none of nothing. `number` says
/// what a value counts as.
///
/// # Panics
/// `q` is not from 0 to 1.
pub fn quantile<T: Copy>(sorted: &[T], q: f64, number: impl Fn(T) -> f64) -> Option<f64> {
    assert!((0.0..=1.0).contains(&q), "a quantile is from 0 to 1");
    let at = q * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    let below = number(sorted[low]);
    Some(below + (at - at.floor()) * (number(sorted[high]) - below))
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_are_linear_between_order_statistics() {
        let of = |sorted: &[u64], q| quantile(sorted, q, |ns| ns as f64);
        assert_eq!(of(&[], 0.5), None);
        assert_eq!(of(&[7], 0.99), Some(7.0));
        assert_eq!(of(&[0, 10], 0.25), Some(2.5));
        let sorted = [1.0, 2.0, 3.0, 4.0];
        for (q, expected) in [(0.0, 1.0), (0.5, 2.5), (0.95, 3.85), (1.0, 4.0)] {
            let got = quantile(&sorted, q, |v| v).expect("values");
            assert!((got - expected).abs() < 1e-12, "{q}: {got}");
        }
    }
}

//! Two measures of how alike two samples are: rank correlation of pairs, distance of distributions.

/// Kolmogorov-Smirnov distance: the largest difference of the two empirical distribution functions,
/// 0..1. NaN if a sample is empty. Cost: two sorts.
pub(crate) fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return f64::NAN;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let (mut i, mut j) = (0, 0);
    let mut largest: f64 = 0.0;
    while i < a.len() && j < b.len() {
        // Both functions step over all values equal to the smaller next one.
        let at = a[i].min(b[j]);
        i += a[i..].iter().take_while(|v| **v <= at).count();
        j += b[j..].iter().take_while(|v| **v <= at).count();
        let gap = i as f64 / a.len() as f64 - j as f64 / b.len() as f64;
        largest = largest.max(gap.abs());
    }
    largest
}

/// Spearman's rank correlation: Pearson's of the ranks, equal values sharing their mean rank. NaN
/// for fewer than two pairs or if one side is constant.
///
/// # Panics
/// If the sides are of different length.
pub(crate) fn spearman(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "a correlation is of pairs");
    pearson(&ranks(a), &ranks(b))
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    for tied in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let below = order.partition_point(|&i| values[i] < values[tied[0]]);
        let mean_rank = below as f64 + (tied.len() as f64 + 1.0) / 2.0;
        tied.iter().for_each(|&i| ranks[i] = mean_rank);
    }
    ranks
}

fn pearson(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let (dx, dy) = (x - mean_a, y - mean_b);
        ab += dx * dy;
        aa += dx * dx;
        bb += dy * dy;
    }
    // 0 / 0 is the NaN that is promised.
    ab / (aa * bb).sqrt()
}

#[cfg(test)]
mod tests {
    use super::{kolmogorov_smirnov, spearman};

    #[test]
    fn the_distance_of_known_samples() {
        let ks = kolmogorov_smirnov;
        assert_eq!(ks(&[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0]), 0.0);
        // Apart: one function is 1 before the other leaves 0.
        assert_eq!(ks(&[1.0, 2.0], &[3.0, 4.0, 5.0]), 1.0);
        // Half of the first sample lies below all of the second.
        assert_eq!(ks(&[1.0, 2.0, 3.0, 4.0], &[3.0, 4.0]), 0.5);
        // Ties: F jumps from 0 to 2/3 at 1, G from 0 to 1/3.
        let third = ks(&[1.0, 1.0, 2.0], &[1.0, 2.0, 2.0]);
        assert!((third - 1.0 / 3.0).abs() < 1e-15, "{third}");
        assert!(ks(&[], &[1.0]).is_nan());
    }

    /// Of uniform grids shifted by s the distance is s.
    #[test]
    fn a_shifted_uniform_sample_is_as_far_as_its_shift() {
        let grid =
            |shift: f64| -> Vec<f64> { (0..1000).map(|i| f64::from(i) / 1e3 + shift).collect() };
        let distance = kolmogorov_smirnov(&grid(0.0), &grid(0.2505));
        assert!((distance - 0.251).abs() < 1e-12, "{distance}");
    }

    /// The slow, obvious form: both functions at every value.
    #[test]
    fn the_walk_finds_what_looking_everywhere_finds() {
        let draw = |k: u64, n: u64| -> Vec<f64> {
            (0..n)
                .map(|i| ((i * k + 7) * 2_654_435_761 % 97) as f64)
                .collect()
        };
        let share = |sample: &[f64], at: f64| {
            sample.iter().filter(|v| **v <= at).count() as f64 / sample.len() as f64
        };
        for n in 1..40 {
            let (a, b) = (draw(3, n), draw(5, 41 - n));
            let slow = a
                .iter()
                .chain(&b)
                .map(|&v| (share(&a, v) - share(&b, v)).abs());
            let slow = slow.fold(0.0, f64::max);
            assert_eq!(kolmogorov_smirnov(&a, &b), slow, "n = {n}");
        }
    }

    #[test]
    fn the_rank_correlation_of_known_pairs() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0];
        let close = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-12, "{got}");
        close(spearman(&a, &[10.0, 20.0, 30.0, 1e6, 1e9]), 1.0);
        close(spearman(&a, &[5.0, 4.0, 3.0, 2.0, 1.0]), -1.0);
        // Without ties 1 - 6 sum d^2 / (n (n^2 - 1)): d = 1, 1, 1, 1, 0.
        close(spearman(&a, &[2.0, 1.0, 4.0, 3.0, 5.0]), 1.0 - 24.0 / 120.0);
        // Ranks 1.5, 1.5, 3 against 1, 2, 3: covariance 1.5, variances 1.5 and 2.
        close(
            spearman(&[7.0, 7.0, 9.0], &[1.0, 2.0, 3.0]),
            1.5 / 3.0_f64.sqrt(),
        );
        assert!(spearman(&[1.0, 1.0], &[1.0, 2.0]).is_nan());
        assert!(spearman(&[], &[]).is_nan());
    }
}

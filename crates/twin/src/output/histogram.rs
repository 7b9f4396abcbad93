//! Counts of positive numbers in buckets of at most 0.8 %: the exponent and seven bits of mantissa.

const MANTISSA_BITS: u32 = 7;
const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - MANTISSA_BITS;
/// 2^-40 and 2^40: numbers beyond share the outermost buckets (a picosecond, and 30,000 years in s).
const LEAST_EXPONENT: u64 = 1023 - 40;
const EXPONENTS: u64 = 80;
const FIRST: u64 = LEAST_EXPONENT << MANTISSA_BITS;
const BUCKETS: usize = (EXPONENTS << MANTISSA_BITS) as usize;
/// A quantile needs this many observations above it.
const LEAST_ABOVE: f64 = 10.0;

/// See the module. 80 KiB, whatever it has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
        }
    }
}

impl Histogram {
    /// Counts one number; 0 and below count as the least.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        let bits = if x > 0.0 { x.to_bits() } else { 0 };
        let bucket = (bits >> SHIFT)
            .saturating_sub(FIRST)
            .min(BUCKETS as u64 - 1);
        self.counts[bucket as usize] += 1;
        self.total += 1;
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// Numbers seen.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The quantile `q`, within 0.4 %: the middle of the bucket of the number of rank ceil(q*n). None
    /// unless at least ten numbers lie above it, so p99.9 needs ten thousand.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        // 1 - 0.999 is a little above 0.001; the ten thousandth number must do.
        let above = (1.0 - q) * self.total as f64;
        (above >= LEAST_ABOVE * (1.0 - 1e-9)).then(|| self.rank_value(q))
    }

    /// The same from however few numbers; NaN from none.
    pub fn rough_quantile(&self, q: f64) -> f64 {
        if self.total == 0 {
            return f64::NAN;
        }
        self.rank_value(q)
    }

    fn rank_value(&self, q: f64) -> f64 {
        let rank = (libm::ceil(q * self.total as f64) as u64).clamp(1, self.total);
        let mut sum = 0;
        let at = self.counts.iter().position(|count| {
            sum += count;
            sum >= rank
        });
        let edge = |bucket: u64| f64::from_bits((bucket + FIRST) << SHIFT);
        at.map_or(f64::NAN, |at| {
            f64::midpoint(edge(at as u64), edge(at as u64 + 1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;
    use proptest::prelude::*;

    fn of(list: &[f64]) -> Histogram {
        let mut histogram = Histogram::default();
        list.iter().for_each(|x| histogram.add(*x));
        histogram
    }

    proptest! {
        #[test]
        fn quantiles_are_within_half_a_bucket_of_the_sorted_list(
            list in prop::collection::vec((-25.0_f64..25.0).prop_map(libm::exp), 1..300),
            q in 0.0_f64..=1.0,
        ) {
            let mut sorted = list.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = (libm::ceil(q * list.len() as f64) as usize).max(1);
            let exact = sorted[rank - 1];
            let got = of(&list).rough_quantile(q);
            prop_assert!((got / exact - 1.0).abs() <= 0.004, "{} {}", got, exact);
        }

        #[test]
        fn merging_is_counting_together(
            a in prop::collection::vec(1e-6_f64..1e6, 0..100),
            b in prop::collection::vec(1e-6_f64..1e6, 0..100),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }

    #[test]
    fn a_quantile_needs_ten_numbers_above_it() {
        let numbers: Vec<f64> = (1..=10_000).map(f64::from).collect();
        assert!(of(&numbers).quantile(0.999).is_some());
        assert!(of(&numbers[1..]).quantile(0.999).is_none());
        assert!(of(&numbers).quantile(0.9999).is_none());
        assert!(of(&[]).quantile(0.5).is_none() && of(&[]).rough_quantile(0.5).is_nan());
    }

    #[test]
    fn what_is_out_of_range_lands_at_the_ends() {
        let mut histogram = of(&[0.0, -3.0, 1e-300, 1e300, f64::INFINITY]);
        assert_eq!(histogram.total(), 5);
        assert!(histogram.rough_quantile(0.5) < 1e-12);
        assert!(histogram.rough_quantile(1.0) > 1e12);
        histogram.clear();
        assert_eq!(histogram, Histogram::default());
    }
}

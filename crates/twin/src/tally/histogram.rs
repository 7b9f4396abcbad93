//! Counts of positive numbers in buckets of at most 0.8 %: the exponent and seven bits of mantissa.

const MANTISSA_BITS: u32 = 7;
/// Bits of 2^-40 and 2^40, below and above which numbers share the outermost buckets.
const LEAST_EXPONENT: u64 = 1023 - 40;
const EXPONENTS: u64 = 80;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; (EXPONENTS << MANTISSA_BITS) as usize],
            total: 0,
        }
    }
}

impl Histogram {
    #[inline]
    pub(super) fn add(&mut self, x: f64) {
        let bucket = (x.to_bits() >> (52 - MANTISSA_BITS))
            .saturating_sub(LEAST_EXPONENT << MANTISSA_BITS)
            .min(self.counts.len() as u64 - 1);
        self.counts[bucket as usize] += 1;
        self.total += 1;
    }

    /// The middle of the bucket that holds the quantile `q`.
    pub(super) fn quantile(&self, q: f64) -> f64 {
        let rank = ((q * self.total as f64).ceil() as u64).max(1);
        let mut sum = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            sum += count;
            if sum >= rank {
                let edge = |b: u64| {
                    f64::from_bits((b + (LEAST_EXPONENT << MANTISSA_BITS)) << (52 - MANTISSA_BITS))
                };
                return 0.5 * (edge(bucket as u64) + edge(bucket as u64 + 1));
            }
        }
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    #[test]
    fn quantiles_are_within_a_bucket_of_the_sorted_list() {
        let mut histogram = Histogram::default();
        let mut list: Vec<f64> = (1..=10_000)
            .map(|i| 1e-4 * f64::from(i * 7919 % 10_007))
            .collect();
        list.iter().for_each(|x| histogram.add(*x));
        list.sort_by(f64::total_cmp);
        for q in [0.01, 0.5, 0.95, 0.99, 1.0] {
            let exact = list[(q * list.len() as f64).ceil() as usize - 1];
            let got = histogram.quantile(q);
            assert!((got / exact - 1.0).abs() < 0.008, "{q}: {got} {exact}");
        }
    }
}

//! Mean and quantiles of a correlated stream, with intervals from the means of batches.
//!
//! The stream is cut into batches of equal length; 20 to 40 are kept, neighbors are merged when there are
//! more, so its length need not be known. While the means of neighboring batches are correlated (lag-1
//! above 0.1), pairs are merged further before the interval is taken; if ten still are, the estimate says
//! so: the run is too short. Cost: a few ns an observation; memory: 40 histograms of 80 KiB.

use super::histogram::Histogram;
use crate::sum::Sum;
use evidence::{Interval, student};

/// Batches kept at most; half as many right after a merge.
const MOST: usize = 40;
/// Fewest batches for an interval.
const LEAST: usize = 10;
const MOST_CORRELATION: f64 = 0.1;

/// Observations in order, in batches.
#[derive(Debug, Clone)]
pub struct Batches {
    /// Observations in a full batch.
    length: u64,
    full: Vec<Batch>,
    open: Batch,
}

#[derive(Debug, Clone, Default)]
struct Batch {
    sum: Sum,
    values: Histogram,
}

/// A number with what is known of its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// From all observations.
    pub value: f64,
    /// Standard error; none from too few batches.
    pub standard_error: Option<f64>,
    /// Half the width of the 95 % interval; none from too few batches.
    pub half_width: Option<f64>,
    /// Neighboring batches are still correlated: the interval is too narrow.
    pub is_correlated: bool,
}

impl Batches {
    /// For about so many observations; if there are more, batches grow.
    pub fn expecting(observations: u64) -> Self {
        Self {
            length: (observations / MOST as u64).max(1),
            full: Vec::with_capacity(MOST),
            open: Batch::default(),
        }
    }

    /// Takes the next observation.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        self.open.sum.add(x);
        self.open.values.add(x);
        if self.open.values.total() == self.length {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        if self.full.len() == MOST {
            self.merge_pairs();
            // The batch that is open is now a half one.
            return;
        }
        self.full.push(std::mem::take(&mut self.open));
    }

    fn merge_pairs(&mut self) {
        for pair in 0..MOST / 2 {
            let second = std::mem::take(&mut self.full[2 * pair + 1]);
            let mut first = std::mem::take(&mut self.full[2 * pair]);
            first.sum.add(second.sum.value());
            first.values.merge(&second.values);
            self.full[pair] = first;
        }
        self.full.truncate(MOST / 2);
        self.length *= 2;
    }

    /// Observations so far.
    pub fn count(&self) -> u64 {
        self.full.len() as u64 * self.length + self.open.values.total()
    }

    /// All observations.
    pub fn histogram(&self) -> Histogram {
        let mut all = self.open.values.clone();
        self.full.iter().for_each(|batch| all.merge(&batch.values));
        all
    }

    /// The mean; none without observations. What has not filled a batch counts in the value only.
    pub fn mean(&self) -> Option<Estimate> {
        let count = self.count();
        let batches = self.full.iter().chain([&self.open]);
        let total = batches.map(|b| b.sum.value()).collect::<Sum>().value();
        let means = self.full.iter().map(|b| b.sum.value() / self.length as f64);
        (count > 0).then(|| estimate(total / count as f64, means.collect()))
    }

    /// The quantile `q`; none unless ten observations lie above it.
    pub fn quantile(&self, q: f64) -> Option<Estimate> {
        let value = self.histogram().quantile(q)?;
        let each = self.full.iter().map(|b| b.values.rough_quantile(q));
        Some(estimate(value, each.collect()))
    }
}

/// The error of a value from that of the batches.
fn estimate(value: f64, mut batches: Vec<f64>) -> Estimate {
    let mut is_correlated = correlation(&batches) > MOST_CORRELATION;
    while is_correlated && batches.len() >= 2 * LEAST {
        let pairs = batches.chunks_exact(2);
        batches = pairs.map(|p| f64::midpoint(p[0], p[1])).collect();
        is_correlated = correlation(&batches) > MOST_CORRELATION;
    }
    let error = student(&batches).filter(|_| batches.len() >= LEAST);
    Estimate {
        value,
        standard_error: error.map(|e: Interval| e.standard_error),
        half_width: error.map(|e| e.half_width),
        is_correlated,
    }
}

/// Lag-1 correlation.
fn correlation(values: &[f64]) -> f64 {
    let mean = values.iter().copied().collect::<Sum>().value() / values.len() as f64;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let products = values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean));
    if squares > 0.0 {
        products.sum::<f64>() / squares
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Batches, MOST, correlation};
    use proptest::prelude::*;
    use schema::rng::{Purpose, exponential, normal, stream};

    fn of(expected: u64, list: &[f64]) -> Batches {
        let mut batches = Batches::expecting(expected);
        list.iter().for_each(|x| batches.add(*x));
        batches
    }

    /// Standard error of the mean by the book: cut, average, two passes.
    fn by_the_book(list: &[f64], length: usize) -> f64 {
        let mut means: Vec<f64> = list
            .chunks_exact(length)
            .map(|c| c.iter().sum::<f64>() / length as f64)
            .collect();
        while correlation(&means) > 0.1 && means.len() >= 20 {
            means = means.chunks_exact(2).map(|p| (p[0] + p[1]) / 2.0).collect();
        }
        let n = means.len() as f64;
        let mean = means.iter().sum::<f64>() / n;
        let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (variance / n).sqrt()
    }

    proptest! {
        #[test]
        fn mean_count_and_error_are_those_of_two_passes(
            list in prop::collection::vec(0.01_f64..100.0, 40..2000),
            expected in 0_u64..3000,
        ) {
            let batches = of(expected, &list);
            prop_assert_eq!(batches.count(), list.len() as u64);
            prop_assert!(batches.full.len() <= MOST);
            let got = batches.mean().expect("observations");
            let mean = list.iter().sum::<f64>() / list.len() as f64;
            prop_assert!((got.value / mean - 1.0).abs() < 1e-12);
            if let Some(error) = got.standard_error {
                let book = by_the_book(&list, batches.length as usize);
                prop_assert!((error - book).abs() <= 1e-9 * mean, "{} {}", error, book);
            }
        }
    }

    #[test]
    fn a_stream_of_unknown_length_keeps_twenty_to_forty_batches() {
        let mut batches = Batches::expecting(0);
        for i in 0..100_000_u32 {
            batches.add(f64::from(i));
            assert!(batches.full.len() <= MOST);
            if i > 40 {
                assert!(batches.full.len() >= MOST / 2);
            }
        }
        assert_eq!(batches.count(), 100_000);
        assert_eq!(batches.histogram().total(), 100_000);
        assert_eq!(batches.mean().expect("some").value, 49_999.5);
    }

    /// Of 200 independent streams about 190 intervals hold the truth; binomial sd 3.1, four of them.
    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        let (mut mean_holds, mut quantile_holds) = (0, 0);
        for entity in 0..200 {
            let mut rng = stream(11, Purpose::Sizes, entity, 0);
            let mut batches = Batches::expecting(20_000);
            (0..20_000).for_each(|_| batches.add(exponential(&mut rng)));
            let mean = batches.mean().expect("some");
            mean_holds += u32::from((mean.value - 1.0).abs() <= mean.half_width.expect("enough"));
            let p90 = batches.quantile(0.9).expect("enough above");
            let error = (p90.value - libm::log(10.0)).abs();
            quantile_holds += u32::from(error <= p90.half_width.expect("enough"));
        }
        assert!((178..=200).contains(&mean_holds), "{mean_holds}");
        assert!((178..=200).contains(&quantile_holds), "{quantile_holds}");
    }

    #[test]
    fn correlated_batches_are_merged_or_confessed() {
        let mut rng = stream(5, Purpose::Sizes, 0, 0);
        // First-order autoregression: a long memory against short batches.
        let mut ar = |memory: f64| {
            let mut x = 0.0;
            let mut batches = Batches::expecting(4_000);
            for _ in 0..4_000 {
                x = memory * x + normal(&mut rng);
                batches.add(x + 1e3);
            }
            batches.mean().expect("some")
        };
        let (short, long) = (ar(0.5), ar(0.9999));
        assert!(!short.is_correlated && long.is_correlated);
        assert!(long.standard_error > short.standard_error);
    }

    #[test]
    fn few_observations_have_a_mean_and_no_interval() {
        assert_eq!(of(1000, &[]).mean(), None);
        let few = of(1000, &[1.0, 2.0]).mean().expect("some");
        assert_eq!((few.value, few.half_width), (1.5, None));
    }
}

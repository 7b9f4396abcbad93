//! Where the warm-up ends: MSER-5 (White 1997).
//!
//! Means Y_j of five observations; the cut d minimizes sum_{j>d}(Y_j - mean_{>d})^2/(m - d)^2 over
//! d <= m/2, the standard error of what is left. At most 65,536 means are kept: when there are more,
//! neighbors are merged and each stands for twice as many observations.

/// Observations in a mean at first.
const FIVE: u64 = 5;
/// Means kept at most.
const MOST: usize = 65_536;

/// Observations in order, from the beginning of a run.
#[derive(Debug, Clone)]
pub struct WarmUp {
    means: Vec<f64>,
    length: u64,
    sum: f64,
    held: u64,
    most: usize,
}

impl Default for WarmUp {
    fn default() -> Self {
        Self::with_means(MOST)
    }
}

impl WarmUp {
    fn with_means(most: usize) -> Self {
        Self {
            means: Vec::with_capacity(most),
            length: FIVE,
            sum: 0.0,
            held: 0,
            most,
        }
    }

    /// Takes the next observation.
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.sum += x;
        self.held += 1;
        if self.held == self.length {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        if self.means.len() == self.most {
            for pair in 0..self.most / 2 {
                self.means[pair] = f64::midpoint(self.means[2 * pair], self.means[2 * pair + 1]);
            }
            self.means.truncate(self.most / 2);
            self.length *= 2;
            // The mean that is open is now a half one.
            return;
        }
        self.means.push(self.sum / self.length as f64);
        self.sum = 0.0;
        self.held = 0;
    }

    /// Observations to drop at the beginning; none if the run is too short to tell: the best cut is the
    /// last one allowed.
    pub fn cut(&self) -> Option<u64> {
        let most = self.means.len() / 2;
        let cut = self.best_cut()?;
        (cut < most).then(|| cut as u64 * self.length)
    }

    /// From the end backward with running mean and sum of squares (Welford 1962); the earliest of
    /// equals.
    fn best_cut(&self) -> Option<usize> {
        let m = self.means.len();
        let (mut mean, mut squares) = (0.0, 0.0);
        let mut best = None;
        let mut least = f64::INFINITY;
        for d in (0..m).rev() {
            let kept = (m - d) as f64;
            let off = self.means[d] - mean;
            mean += off / kept;
            squares += off * (self.means[d] - mean);
            let score = squares / (kept * kept);
            if d <= m / 2 && score <= least {
                least = score;
                best = Some(d);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::WarmUp;
    use proptest::prelude::*;
    use schema::rng::{Purpose, normal, stream};

    fn of(list: &[f64]) -> WarmUp {
        let mut warm_up = WarmUp::default();
        list.iter().for_each(|x| warm_up.add(*x));
        warm_up
    }

    /// The definition, quadratic.
    fn score(means: &[f64], d: usize) -> f64 {
        let kept = &means[d..];
        let n = kept.len() as f64;
        let mean = kept.iter().sum::<f64>() / n;
        kept.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / (n * n)
    }

    proptest! {
        #[test]
        fn the_cut_minimizes_the_definition(list in prop::collection::vec(0.0_f64..10.0, 20..400)) {
            let means: Vec<f64> = list.chunks_exact(5).map(|c| c.iter().sum::<f64>() / 5.0).collect();
            let least = (0..=means.len() / 2).map(|d| score(&means, d)).fold(f64::INFINITY, f64::min);
            let got = of(&list).best_cut().expect("means");
            prop_assert!(got <= means.len() / 2);
            prop_assert!(score(&means, got) <= least * (1.0 + 1e-9));
        }
    }

    #[test]
    fn a_transient_is_cut_off_and_a_steady_stream_is_kept() {
        let mut rng = stream(2, Purpose::Sizes, 0, 0);
        let mut noise = || normal(&mut rng);
        let steady: Vec<f64> = (0..10_000).map(|_| noise()).collect();
        assert!(of(&steady).cut().expect("long enough") < 1_000);
        let starting: Vec<f64> = (0..10_000)
            .map(|i| noise() + if i < 1_500 { 10.0 } else { 0.0 })
            .collect();
        let cut = of(&starting).cut().expect("long enough");
        assert!((1_500..2_000).contains(&cut), "{cut}");
    }

    #[test]
    fn a_stream_that_never_settles_is_too_short() {
        let ramp: Vec<f64> = (0..10_000).map(f64::from).collect();
        assert_eq!(of(&ramp).cut(), None);
        assert_eq!(of(&[1.0; 4]).cut(), None);
    }

    #[test]
    fn a_full_memory_merges_neighbors_and_finds_the_same_cut() {
        let mut rng = stream(3, Purpose::Sizes, 0, 0);
        let (mut small, mut large) = (WarmUp::with_means(64), WarmUp::default());
        for i in 0..20_000 {
            let x = normal(&mut rng) + if i < 4_000 { 10.0 } else { 0.0 };
            small.add(x);
            large.add(x);
            assert!(small.means.len() <= 64);
        }
        assert_eq!(small.length % 5, 0);
        let (a, b) = (small.cut().expect("long"), large.cut().expect("long"));
        assert!(
            b >= 4_000 && a >= 4_000 && a <= b + 2 * small.length,
            "{a} {b}"
        );
    }
}

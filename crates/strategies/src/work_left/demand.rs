//! What a request of a class needs, learned from how long it took.

/// Classes that were seen more often than this say something about the spread within a class.
const SPREAD_FROM: u64 = 2;
/// A class counts in the spread at most as if seen this often.
const SPREAD_WEIGHT: u64 = 50;
/// Gain of the squared error in the long run.
const SPREAD_GAIN: f64 = 0.02;
/// The log-standard deviation within a class, at least, at most, and before anything is known.
const SPREAD: (f64, f64, f64) = (0.02, 1.5, 0.3);
/// A need, core-ms, is never learned smaller: logarithms stay finite.
const LEAST_MS: f64 = 1e-6;

#[derive(Debug, Clone, Copy, Default)]
struct Class {
    mean_ms: f64,
    count: u64,
    squared_error: f64,
}

impl Class {
    fn spread_weight(&self) -> f64 {
        if self.count > SPREAD_FROM {
            self.count.min(SPREAD_WEIGHT) as f64
        } else {
            0.0
        }
    }
}

/// Means per class and the spread within one.
#[derive(Debug, Clone)]
pub(crate) struct Demand {
    gain: f64,
    classes: Vec<Class>,
    known: u32,
    sum_of_means: f64,
    sum_of_squares: f64,
    weighted_error: f64,
    weight: f64,
}

impl Demand {
    /// Nothing known; `gain` is the newest value's weight in the long run.
    pub(crate) fn new(gain: f64) -> Self {
        Self {
            gain,
            classes: Vec::new(),
            known: 0,
            sum_of_means: 0.0,
            sum_of_squares: 0.0,
            weighted_error: 0.0,
            weight: 0.0,
        }
    }

    /// Mean need of a class, core-ms; `None` before its first completion.
    pub(crate) fn of(&self, class: u32) -> Option<f64> {
        let class = self.classes.get(class as usize)?;
        (class.count > 0).then_some(class.mean_ms)
    }

    /// Completions of a class.
    pub(crate) fn count(&self, class: u32) -> u64 {
        self.classes.get(class as usize).map_or(0, |c| c.count)
    }

    /// Mean over the known classes, core-ms.
    pub(crate) fn typical(&self) -> Option<f64> {
        (self.known > 0).then(|| self.sum_of_means / f64::from(self.known))
    }

    /// What is left, on average, of a request found in service about which nothing else is known,
    /// core-ms: E\[X²\]/2E\[X\], for who needs much is found more often. 0 before anything is known.
    pub(crate) fn left_of_one_found(&self) -> f64 {
        if self.known == 0 {
            return 0.0;
        }
        let spread = self.spread();
        libm::exp(spread * spread) * self.sum_of_squares / (2.0 * self.sum_of_means)
    }

    /// Log-standard deviation of the needs within a class.
    pub(crate) fn spread(&self) -> f64 {
        let (least, most, unknown) = SPREAD;
        if self.weight <= 0.0 {
            return unknown;
        }
        libm::sqrt((self.weighted_error / self.weight).max(0.0)).clamp(least, most)
    }

    /// Takes how far a completed request of a known class was from its mean: the spread.
    pub(crate) fn learn_spread(&mut self, class: u32, need_ms: f64) {
        let Some(class) = self.classes.get_mut(class as usize).filter(|c| c.count > 0) else {
            return;
        };
        let log = libm::log(need_ms.max(LEAST_MS) / class.mean_ms);
        let bounded = (log * log).min(9.0 * class.squared_error.max(0.02));
        let gain = (1.0 / class.count as f64).max(SPREAD_GAIN);
        let before = class.squared_error;
        class.squared_error += gain * (bounded - before);
        self.weighted_error += class.spread_weight() * (class.squared_error - before);
    }

    /// Takes what a completed request needed, core-ms: the mean of its class.
    pub(crate) fn learn_mean(&mut self, class: u32, need_ms: f64) {
        let need_ms = need_ms.max(LEAST_MS);
        let index = class as usize;
        if index >= self.classes.len() {
            self.classes.resize(index + 1, Class::default());
        }
        let class = &mut self.classes[index];
        if class.count == 0 {
            self.known += 1;
        }
        let (mean_before, weight_before) = (class.mean_ms, class.spread_weight());
        class.count += 1;
        let gain = (1.0 / class.count as f64).max(self.gain);
        class.mean_ms += gain * (need_ms - mean_before);
        self.sum_of_means += class.mean_ms - mean_before;
        self.sum_of_squares += class.mean_ms * class.mean_ms - mean_before * mean_before;
        let more = class.spread_weight() - weight_before;
        self.weight += more;
        self.weighted_error += more * class.squared_error;
    }
}

#[cfg(test)]
mod tests {
    use super::Demand;

    #[test]
    fn the_first_sample_sets_the_mean_and_later_ones_average() {
        let mut demand = Demand::new(0.02);
        assert_eq!(
            (demand.of(3), demand.typical(), demand.spread()),
            (None, None, 0.3)
        );
        let learn = |demand: &mut Demand, class, need| {
            demand.learn_spread(class, need);
            demand.learn_mean(class, need);
        };
        learn(&mut demand, 3, 10.0);
        assert_eq!((demand.of(3), demand.count(3)), (Some(10.0), 1));
        learn(&mut demand, 3, 20.0);
        learn(&mut demand, 3, 30.0);
        assert!((demand.of(3).unwrap() - 20.0).abs() < 1e-12);
        learn(&mut demand, 0, 40.0);
        assert!((demand.typical().unwrap() - 30.0).abs() < 1e-12);
        assert_eq!(demand.of(1), None);
    }

    #[test]
    fn one_found_in_service_is_rather_a_large_one() {
        let mut demand = Demand::new(0.02);
        assert_eq!(demand.left_of_one_found(), 0.0);
        for _ in 0..100 {
            for (class, need) in [(0, 10.0), (1, 90.0)] {
                demand.learn_spread(class, need);
                demand.learn_mean(class, need);
            }
        }
        // (100 + 8100) / 2 over twice the mean of 50, and the least spread.
        assert!((demand.left_of_one_found() - 41.0).abs() < 0.02);
    }

    #[test]
    fn equal_needs_leave_the_least_spread() {
        let mut demand = Demand::new(0.02);
        for _ in 0..100 {
            demand.learn_spread(0, 5.0);
            demand.learn_mean(0, 5.0);
        }
        assert_eq!(demand.spread(), 0.02);
    }
}

//! The number in the system over time, kept as integrals over equal bins whose width doubles when
//! there are too many.

use crate::sum::Sum;

const BINS: usize = 2048;
/// Width of the first bins, s.
const FIRST_WIDTH: f64 = 1e-3;
const SLICES: usize = 20;
/// Student's t beyond which a slope over 20 slices is growth (two-sided 0.2 %).
const T_GROWTH: f64 = 3.61;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Area {
    number: f64,
    last: f64,
    total: Sum,
    bins: Vec<f64>,
    width: f64,
    open: f64,
    open_until: f64,
}

impl Default for Area {
    fn default() -> Self {
        Self {
            number: 0.0,
            last: 0.0,
            total: Sum::default(),
            bins: Vec::with_capacity(BINS),
            width: FIRST_WIDTH,
            open: 0.0,
            open_until: FIRST_WIDTH,
        }
    }
}

impl Area {
    /// The number changes at `now`.
    #[inline]
    pub(super) fn change(&mut self, now: f64, by: f64) {
        let grown = (now - self.last) * self.number;
        self.total.add(grown);
        if now < self.open_until {
            self.open += grown;
        } else {
            self.fill(now);
        }
        self.last = now;
        self.number += by;
    }

    #[cold]
    fn fill(&mut self, now: f64) {
        let mut from = self.last;
        while now >= self.open_until {
            self.open += (self.open_until - from) * self.number;
            from = self.open_until;
            self.bins.push(self.open);
            self.open = 0.0;
            if self.bins.len() == BINS {
                let merged = self.bins.chunks(2).map(|pair| pair[0] + pair[1]).collect();
                self.bins = merged;
                self.width *= 2.0;
            }
            self.open_until = (self.bins.len() + 1) as f64 * self.width;
        }
        self.open += (now - from) * self.number;
    }

    pub(super) fn total(&self, now: f64) -> f64 {
        let mut total = self.total;
        total.add((now - self.last) * self.number);
        total.value()
    }

    /// Slope of the mean number over equal slices of a window, per second, and whether it is growth:
    /// significant, and the last five slices at least 1.5 times the first five.
    pub(super) fn growth(&self, from: f64, to: f64) -> (f64, bool) {
        let step = (to - from) / SLICES as f64;
        if step < self.width {
            return (0.0, false);
        }
        let edge = |i: usize| self.up_to(from + i as f64 * step);
        let means: Vec<f64> = (0..SLICES)
            .map(|i| (edge(i + 1) - edge(i)) / step)
            .collect();
        let n = SLICES as f64;
        let (x_mean, y_mean) = ((n - 1.0) / 2.0, means.iter().sum::<f64>() / n);
        let x = |i: usize| i as f64 - x_mean;
        let xx: f64 = (0..SLICES).map(|i| x(i) * x(i)).sum();
        let xy: f64 = means
            .iter()
            .enumerate()
            .map(|(i, y)| x(i) * (y - y_mean))
            .sum();
        let slope = xy / xx;
        let rest = means.iter().enumerate();
        let rest: f64 = rest.map(|(i, y)| (y - y_mean - slope * x(i)).powi(2)).sum();
        let error = (rest / (n - 2.0) / xx).sqrt();
        let significant = slope > 0.0 && (error == 0.0 || slope / error > T_GROWTH);
        let part = |range: std::ops::Range<usize>| means[range].iter().sum::<f64>();
        let (first, last) = (part(0..5), part(SLICES - 5..SLICES));
        (slope / step, significant && last >= 1.5 * first)
    }

    /// The integral up to `t`, linear within a bin.
    fn up_to(&self, t: f64) -> f64 {
        let place = t / self.width;
        let whole = (place.floor() as usize).min(self.bins.len());
        let sum: f64 = self.bins[..whole].iter().sum();
        let rest = self.bins.get(whole).copied().unwrap_or(self.open);
        sum + rest * (place - whole as f64).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Area;

    #[test]
    fn steady_numbers_do_not_grow_and_a_ramp_does() {
        let (mut steady, mut ramp) = (Area::default(), Area::default());
        let mut now = 0.0;
        for i in 0..100_000 {
            now += 0.01;
            steady.change(now, if i % 2 == 0 { 1.0 } else { -1.0 });
            ramp.change(now, if i % 3 == 0 { -1.0 } else { 1.0 });
        }
        assert!((steady.total(now) - 500.0).abs() < 1e-6);
        assert!(!steady.growth(0.1 * now, now).1);
        let (slope, grows) = ramp.growth(0.1 * now, now);
        // Two of three changes add one: a third of a request every 10 ms.
        assert!(grows && (slope - 100.0 / 3.0).abs() < 0.5, "{slope}");
    }
}

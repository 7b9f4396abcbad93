//! The number in the system over time, as integrals over equal bins whose width doubles when there are
//! too many; and whether it grew.

use crate::sum::Sum;

const BINS: usize = 2048;
const SLICES: usize = 20;
/// Slices compared at either end.
const AT_AN_END: usize = 5;
/// Student's t of a slope over 20 slices: two-sided 0.2 % at 18 degrees of freedom.
const SLOPE_T: f64 = 3.61;
const GROWTH: f64 = 1.5;

/// See the module.
#[derive(Debug, Clone)]
pub struct Backlog {
    number: f64,
    last: f64,
    bins: Vec<f64>,
    width: f64,
    open: f64,
    open_until: f64,
}

/// How the number in the system went over a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Slope of the number in the system, requests per second (or whatever the unit of time is).
    pub drift_rps: f64,
    /// The slope is significant, and the last five of twenty slices hold at least 1.5 times the first.
    pub grows: bool,
}

impl Backlog {
    /// Empty at time 0; `width` is the first width of a bin, small against the shortest run (a hundredth
    /// of a mean service time will do).
    pub fn new(width: f64) -> Self {
        Self {
            number: 0.0,
            last: 0.0,
            bins: Vec::with_capacity(BINS),
            width,
            open: 0.0,
            open_until: width,
        }
    }

    /// The number changes at `now`, which never decreases.
    #[inline(always)]
    pub fn change(&mut self, now: f64, by: f64) {
        let grown = (now - self.last) * self.number;
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
                for pair in 0..BINS / 2 {
                    self.bins[pair] = self.bins[2 * pair] + self.bins[2 * pair + 1];
                }
                self.bins.truncate(BINS / 2);
                self.width *= 2.0;
            }
            self.open_until = (self.bins.len() + 1) as f64 * self.width;
        }
        self.open += (now - from) * self.number;
    }

    /// The number at present.
    pub fn number(&self) -> f64 {
        self.number
    }

    /// Integral of the number up to `now`.
    pub fn integral(&self, now: f64) -> f64 {
        // A bin is a plain sum of at most a thousandth of all changes.
        let mut sum = Sum::default();
        let open = [self.open, (now - self.last) * self.number];
        self.bins
            .iter()
            .chain(&open)
            .for_each(|part| sum.add(*part));
        sum.value()
    }

    /// Growth over the window from `from` to `to`; none if it is shorter than twenty bins.
    pub fn growth(&self, from: f64, to: f64) -> Option<Growth> {
        let step = (to - from) / SLICES as f64;
        if step < self.width || step.is_nan() {
            return None;
        }
        let edges: Vec<f64> = (0..=SLICES)
            .map(|i| self.up_to(from + i as f64 * step))
            .collect();
        let means: Vec<f64> = edges.windows(2).map(|w| (w[1] - w[0]) / step).collect();
        let (slope, t) = slope(&means);
        let part = |slices: &[f64]| slices.iter().sum::<f64>();
        let (early, late) = (
            part(&means[..AT_AN_END]),
            part(&means[SLICES - AT_AN_END..]),
        );
        Some(Growth {
            drift_rps: slope / step,
            grows: t > SLOPE_T && late >= GROWTH * early,
        })
    }

    /// The integral up to `t`, linear within a bin.
    fn up_to(&self, t: f64) -> f64 {
        let place = t / self.width;
        let whole = (libm::floor(place) as usize).min(self.bins.len());
        let sum: f64 = self.bins[..whole].iter().sum();
        let rest = self.bins.get(whole).copied().unwrap_or(self.open);
        sum + rest * (place - whole as f64).clamp(0.0, 1.0)
    }
}

/// Slope of equally spaced values per step, and its Student's t: infinite for an exact rising line, 0
/// for a flat one.
fn slope(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let (x_mean, y_mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let centered = || {
        let both = values.iter().enumerate();
        both.map(|(x, y)| (x as f64 - x_mean, y - y_mean))
    };
    let xx: f64 = centered().map(|(x, _)| x * x).sum();
    let slope = centered().map(|(x, y)| x * y).sum::<f64>() / xx;
    let rest: f64 = centered()
        .map(|(x, y)| (y - slope * x) * (y - slope * x))
        .sum();
    if slope == 0.0 {
        return (0.0, 0.0);
    }
    (slope, slope / libm::sqrt(rest / (n - 2.0) / xx))
}

#[cfg(test)]
mod tests {
    use super::{BINS, Backlog, slope};
    use proptest::prelude::*;

    /// Integral of a step function over a span, by walking its steps.
    fn walked(steps: &[(f64, f64)], from: f64, to: f64) -> f64 {
        let (mut number, mut last, mut total) = (0.0, 0.0_f64, 0.0);
        for &(at, by) in steps.iter().chain([&(f64::INFINITY, 0.0)]) {
            let overlap = (at.min(to) - last.max(from)).max(0.0);
            total += number * overlap;
            (number, last) = (number + by, at);
        }
        total
    }

    proptest! {
        #[test]
        fn integrals_and_slices_are_those_of_a_walk(
            gaps in prop::collection::vec((0.0_f64..3.0, prop::bool::ANY), 50..400),
        ) {
            let mut backlog = Backlog::new(1e-3);
            let (mut now, mut number) = (0.0, 0.0);
            let mut steps = Vec::new();
            for (gap, up) in gaps {
                now += gap;
                let by = if up || number == 0.0 { 1.0 } else { -1.0 };
                number += by;
                backlog.change(now, by);
                steps.push((now, by));
                prop_assert!(backlog.bins.len() <= BINS);
            }
            let all = walked(&steps, 0.0, now);
            prop_assert!((backlog.integral(now) - all).abs() < 1e-9 * (1.0 + all));
            // On the edges of bins the integral is exact.
            for bin in [0, backlog.bins.len() / 3, backlog.bins.len()] {
                let edge = bin as f64 * backlog.width;
                let exact = walked(&steps, 0.0, edge);
                prop_assert!((backlog.up_to(edge) - exact).abs() < 1e-6 * (1.0 + exact));
            }
        }

        #[test]
        fn the_slope_and_its_error_are_those_of_the_textbook(
            values in prop::collection::vec(-10.0_f64..10.0, 20),
        ) {
            let (got, t) = slope(&values);
            let n = 20.0;
            let (mut sx, mut sy, mut sxx, mut sxy) = (0.0, 0.0, 0.0, 0.0);
            for (x, y) in values.iter().enumerate() {
                let x = x as f64;
                (sx, sy, sxx, sxy) = (sx + x, sy + y, sxx + x * x, sxy + x * y);
            }
            let b = (n * sxy - sx * sy) / (n * sxx - sx * sx);
            let a = (sy - b * sx) / n;
            let rest: f64 = values.iter().enumerate().map(|(x, y)| (y - a - b * x as f64).powi(2)).sum();
            let error = (rest / (n - 2.0) / (sxx - sx * sx / n)).sqrt();
            prop_assert!((got - b).abs() < 1e-9);
            prop_assert!((t - b / error).abs() < 1e-6 * (1.0 + t.abs()));
        }
    }

    #[test]
    fn steady_numbers_do_not_grow_and_a_ramp_does() {
        let (mut steady, mut ramp) = (Backlog::new(1e-3), Backlog::new(1e-3));
        let mut now = 0.0;
        for i in 0..100_000 {
            now += 0.01;
            steady.change(now, if i % 2 == 0 { 1.0 } else { -1.0 });
            ramp.change(now, if i % 3 == 0 { -1.0 } else { 1.0 });
        }
        let window = |backlog: &Backlog| backlog.growth(0.1 * now, now).expect("long enough");
        assert!(!window(&steady).grows);
        // Two of three changes add one: a third of a request every 10 ms.
        let growth = window(&ramp);
        assert!(
            growth.grows && (growth.drift_rps - 100.0 / 3.0).abs() < 0.5,
            "{growth:?}"
        );
        assert_eq!(ramp.growth(now - 1.0, now), None);
        assert_eq!(ramp.growth(now, now), None);
    }

    #[test]
    fn a_slope_that_is_significant_but_small_is_no_growth() {
        let mut backlog = Backlog::new(1e-3);
        // From 100 requests to 120 over the run.
        backlog.change(0.0, 100.0);
        for i in 1..=2_000 {
            backlog.change(f64::from(i) * 0.5, 0.01);
        }
        let growth = backlog.growth(100.0, 1000.0).expect("long enough");
        assert!(!growth.grows && growth.drift_rps > 0.0);
    }
}

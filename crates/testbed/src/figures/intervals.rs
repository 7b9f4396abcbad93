//! Intervals over few runs: Student's t for a mean or for paired log-ratios, Welch's for unpaired.
//! The analysis package computes the same figures independently from the rows.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Two-sided confidence of every interval.
const CONFIDENCE: f64 = 0.95;
/// A point with its 95 % bounds; what one block cannot give is NaN, `null` in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Interval {
    pub(crate) point: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Interval {
    /// Nothing known.
    pub(crate) const UNKNOWN: Self = Self {
        point: f64::NAN,
        low: f64::NAN,
        high: f64::NAN,
    };

    /// True when there are bounds.
    pub(crate) fn has_bounds(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// The interval of the ratio, from one of a log-ratio.
    pub(crate) fn exp(self) -> Self {
        Self {
            point: self.point.exp(),
            low: self.low.exp(),
            high: self.high.exp(),
        }
    }
}

/// Mean with Student's t bounds; no bounds from fewer than two values.
pub(crate) fn student(values: &[f64]) -> Interval {
    if values.is_empty() {
        return Interval::UNKNOWN;
    }
    let mean = mean(values);
    if values.len() < 2 {
        return Interval {
            point: mean,
            ..Interval::UNKNOWN
        };
    }
    let standard_error = (variance(values) / values.len() as f64).sqrt();
    around(mean, standard_error, values.len() as f64 - 1.0)
}

/// Difference of means `b - a` of independent samples with unequal variances (Welch).
pub(crate) fn welch(a: &[f64], b: &[f64]) -> Interval {
    if a.is_empty() || b.is_empty() {
        return Interval::UNKNOWN;
    }
    let difference = mean(b) - mean(a);
    if a.len() < 2 || b.len() < 2 {
        return Interval {
            point: difference,
            ..Interval::UNKNOWN
        };
    }
    let (va, vb) = (variance(a) / a.len() as f64, variance(b) / b.len() as f64);
    if va + vb == 0.0 {
        return around(difference, 0.0, 1.0);
    }
    let freedom =
        (va + vb).powi(2) / (va * va / (a.len() as f64 - 1.0) + vb * vb / (b.len() as f64 - 1.0));
    around(difference, (va + vb).sqrt(), freedom)
}

fn around(point: f64, standard_error: f64, freedom: f64) -> Interval {
    let t = StudentsT::new(0.0, 1.0, freedom)
        .map_or(f64::NAN, |t| t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)));
    Interval {
        point,
        low: point - t * standard_error,
        high: point + t * standard_error,
    }
}

/// Quantile of sorted values, linearly interpolated; NaN without values.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = q * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// Student's t of the slope of equally spaced values; infinite for an exact rising line, 0 for a
/// flat one or for fewer than three values.
pub(crate) fn slope_t(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 3 {
        return 0.0;
    }
    let (x_mean, y_mean) = ((n - 1.0) / 2.0, mean(values));
    let centered = || {
        values
            .iter()
            .enumerate()
            .map(|(x, y)| (x as f64 - x_mean, y - y_mean))
    };
    let xx: f64 = centered().map(|(x, _)| x * x).sum();
    let xy: f64 = centered().map(|(x, y)| x * y).sum();
    let slope = xy / xx;
    let left: f64 = centered().map(|(x, y)| (y - slope * x).powi(2)).sum();
    if slope == 0.0 {
        return 0.0;
    }
    slope / (left / (n - 2.0) / xx).sqrt()
}

/// Arithmetic mean; NaN without values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Unbiased variance; NaN for fewer than two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests;

//! Figures of few runs as the summary writes them: what is not known is NaN, `null` in JSON. The analysis
//! package computes the same figures independently from the rows.

use serde::Serialize;

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

impl From<evidence::Interval> for Interval {
    fn from(of: evidence::Interval) -> Self {
        let reach = Some(of.half_width).filter(|reach| reach.is_finite());
        let reach = reach.unwrap_or(f64::NAN);
        Self {
            point: of.mean,
            low: of.mean - reach,
            high: of.mean + reach,
        }
    }
}

/// Mean with Student's t bounds; no bounds from fewer than two values.
pub(crate) fn student(values: &[f64]) -> Interval {
    evidence::student(values).map_or(Interval::UNKNOWN, Interval::from)
}

/// Difference of means `b - a` of independent samples with unequal variances (Welch).
pub(crate) fn welch(a: &[f64], b: &[f64]) -> Interval {
    evidence::welch(a, b).map_or(Interval::UNKNOWN, Interval::from)
}

/// Quantile of sorted values, linearly interpolated; NaN without values.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    schema::quantile::quantile(sorted, q, |value| value).unwrap_or(f64::NAN)
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

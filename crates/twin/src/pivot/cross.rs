//! Where one line crosses another, interpolated between neighbors.

use serde::Serialize;

/// A change of sign of a difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Crossing {
    /// Whose difference.
    label: String,
    /// Between these two.
    from: f64,
    to: f64,
    /// By a straight line between them; none next to an unstable place.
    at: Option<f64>,
    /// Whether it is above from there on.
    rises: bool,
}

impl Crossing {
    pub(super) fn text(&self, along: &str) -> String {
        let (label, from, to) = (&self.label, self.from, self.to);
        let what = if self.rises { "worse" } else { "better" };
        match self.at {
            Some(at) => {
                format!("{label}: {what} from {along} = {at:.3} on (between {from} and {to})")
            }
            None => format!("{label}: {what} (unstable) between {along} = {from} and {to}"),
        }
    }
}

/// The changes of sign of points (x, difference), in order of x. A difference of zero belongs to what
/// was before it.
pub(super) fn crossings(label: &str, mut points: Vec<(f64, f64)>) -> Vec<Crossing> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.retain(|(_, difference)| *difference != 0.0);
    let pairs = points
        .windows(2)
        .filter(|w| (w[0].1 < 0.0) != (w[1].1 < 0.0));
    pairs
        .map(|w| {
            let ((from, before), (to, after)) = (w[0], w[1]);
            let share = before / (before - after);
            let is_finite = before.is_finite() && after.is_finite();
            Crossing {
                label: label.to_string(),
                from,
                to,
                at: is_finite.then_some(from + share * (to - from)),
                rises: before < 0.0,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::crossings;

    #[test]
    fn lines_cross_where_the_difference_is_zero() {
        let found = crossings("x", vec![(4.0, 3.0), (1.0, -1.0), (2.0, 1.0), (8.0, -3.0)]);
        let told: Vec<_> = found.iter().map(|c| (c.at, c.rises)).collect();
        assert_eq!(told, [(Some(1.5), true), (Some(6.0), false)]);
        assert!(
            found[0]
                .text("K")
                .contains("worse from K = 1.500 on (between 1 and 2)")
        );
        assert!(crossings("x", vec![(1.0, 1.0), (2.0, 0.0), (3.0, 1.0)]).is_empty());
        let found = crossings("x", vec![(1.0, -1.0), (2.0, f64::INFINITY)]);
        assert_eq!((found[0].at, found[0].rises), (None, true));
        assert!(crossings("x", vec![(1.0, -1.0)]).is_empty());
    }
}

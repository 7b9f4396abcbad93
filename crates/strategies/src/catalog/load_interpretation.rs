//! What the two load interpretations share: the board of polled counts, and the rate of own picks.

use crate::backends::Backends;
use crate::measure;
use crate::registry::{Context, Kind, Parameter, Spec};
use crate::time::Time;
use crate::values::BackendId;

/// The parameter `rate-gain`.
pub(super) const RATE_GAIN: Parameter = Parameter {
    name: "rate-gain",
    kind: Kind::Decimal {
        min: 0.001,
        max: 1.0,
    },
    or: &[],
    default: "0.02",
    summary: "weight of the newest gap in the estimate of the arrival rate",
};

/// One backend on the board.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) id: BackendId,
    pub(crate) active: f64,
    pub(crate) weight: f64,
}

impl Place {
    fn per_weight(&self) -> f64 {
        self.active / self.weight
    }
}

/// Rate of own picks, scaled to all balancers.
#[derive(Debug, Clone)]
pub(super) struct Rate {
    gain: f64,
    balancers: f64,
    last: Option<Time>,
    gap_ns: Option<f64>,
    pub(super) poll_interval_ns: f64,
    pub(super) max_age_ns: u64,
}

impl Rate {
    pub(super) fn of(spec: &Spec, context: &Context) -> Self {
        Self {
            gain: spec.decimal("rate-gain").unwrap_or(0.02),
            balancers: spec.integer("balancers").unwrap_or(1) as f64,
            last: None,
            gap_ns: None,
            poll_interval_ns: context.poll_interval_ns as f64,
            max_age_ns: measure::max_age_ns(spec, context),
        }
    }

    pub(super) fn count(&mut self, now: Time) {
        if let Some(last) = self.last {
            let gap_ns = now.since_ns(last) as f64;
            let known = self.gap_ns.unwrap_or(gap_ns);
            self.gap_ns = Some(known + self.gain * (gap_ns - known));
        }
        self.last = Some(now);
    }

    /// Arrivals to be expected in `span_ns`; bounded, since gaps may be 0.
    pub(super) fn expected(&self, span_ns: f64) -> f64 {
        self.gap_ns
            .map_or(0.0, |gap| self.balancers * span_ns / gap.max(1.0))
    }
}

/// Fills the board with the eligible, lowest active per weight first (then by position). False if any of
/// them has no fresh report.
pub(super) fn fill(
    board: &mut Vec<Place>,
    backends: &Backends,
    now: Time,
    max_age_ns: u64,
) -> bool {
    board.clear();
    for backend in backends.eligible() {
        let Some((_, active)) = measure::fresh(backend, now, max_age_ns) else {
            return false;
        };
        board.push(Place {
            id: backend.id,
            active: f64::from(active),
            weight: f64::from(backend.weight),
        });
    }
    board.sort_unstable_by(|a, b| {
        let by_load = a.per_weight().total_cmp(&b.per_weight());
        by_load.then(a.id.cmp(&b.id))
    });
    true
}

/// Probabilities that level the board out over `arrivals` more requests: sums up to 1.
pub(crate) fn level_out(board: &[Place], arrivals: f64, out: &mut Vec<f64>) {
    let mut active: f64 = board.iter().map(|p| p.active).sum();
    let mut weight: f64 = board.iter().map(|p| p.weight).sum();
    let mut level = 0.0;
    let mut reached = 0;
    for m in (1..=board.len()).rev() {
        level = (arrivals + active) / weight;
        reached = m;
        if level >= board[m - 1].per_weight() {
            break;
        }
        active -= board[m - 1].active;
        weight -= board[m - 1].weight;
    }
    out.clear();
    out.extend(board.iter().enumerate().map(|(i, place)| {
        let missing = (place.weight * level - place.active).max(0.0);
        if i < reached { missing / arrivals } else { 0.0 }
    }));
}

/// How many of the board are filled up once `arrivals` requests went to the emptiest first.
pub(crate) fn filled(board: &[Place], arrivals: f64) -> usize {
    let mut weight = 0.0;
    let mut active = 0.0;
    let mut m = 0;
    for place in board {
        // Bringing all before it up to its level takes this many.
        if m > 0 && weight * place.per_weight() - active > arrivals {
            break;
        }
        weight += place.weight;
        active += place.active;
        m += 1;
    }
    m.max(1).min(board.len())
}

#[cfg(test)]
mod tests {
    use super::{Place, filled, level_out};
    use crate::values::BackendId;

    /// Active 8/1/1 at weights 4/3/2: order B, C, A.
    fn board() -> Vec<Place> {
        [(1, 1.0, 3.0), (2, 1.0, 2.0), (0, 8.0, 4.0)]
            .map(|(id, active, weight)| Place {
                id: BackendId(id),
                active,
                weight,
            })
            .to_vec()
    }

    #[test]
    fn the_worked_board_is_leveled_out() {
        let mut p = Vec::new();
        level_out(&board(), 6.0, &mut p);
        let rounded: Vec<f64> = p.iter().map(|p| (p * 1e4).round() / 1e4).collect();
        assert_eq!(rounded, [0.6333, 0.3667, 0.0]);
    }

    #[test]
    fn the_emptiest_are_filled_first() {
        assert_eq!(filled(&board(), 0.0), 1);
        assert_eq!(filled(&board(), 0.49), 1);
        assert_eq!(filled(&board(), 0.5), 2);
        assert_eq!(filled(&board(), 7.9), 2);
        assert_eq!(filled(&board(), 8.0), 3);
    }
}

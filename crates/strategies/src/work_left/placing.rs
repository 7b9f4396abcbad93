//! The rule of `wl-mc`: what a placement is taken to cost.

use super::left::Needs;
use super::price::Price;
use crate::registry::{Kind, Parameter, Spec};

/// Weight of (requests + 1) / cores: settles what would else be equal.
pub(crate) const CROWD_MS: f64 = 0.001;

/// The parameter `objective`.
pub(crate) const OBJECTIVE: Parameter = Parameter {
    name: "objective",
    kind: Kind::Word(&["marginal", "own"]),
    or: &[],
    default: "marginal",
    summary: "count the delay of others, or only the request's own time",
};

/// The parameter `look-ahead`.
pub(crate) const LOOK_AHEAD: Parameter = Parameter {
    name: "look-ahead",
    kind: Kind::Decimal { min: 0.0, max: 1.0 },
    or: &[],
    default: "0.45",
    summary: "part of the time on an idle backend that is not counted",
};

/// What of a placement counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placing {
    marginal: bool,
    look_ahead: f64,
}

/// Where a request may be placed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Its cores.
    pub(crate) cores: f64,
    /// Its believed speed, 1 = nominal.
    pub(crate) speed: f64,
    /// Requests there.
    pub(crate) present: f64,
    /// Requests that would wait in one line for the cores of the whole pool.
    pub(crate) pressure: f64,
}

impl Placing {
    pub(crate) fn new(spec: &Spec) -> Self {
        Self {
            marginal: spec.is("objective", "marginal"),
            look_ahead: spec.decimal("look-ahead").unwrap_or(0.45),
        }
    }

    /// What it costs, ms, to place a request of `size_ms` core-ms beside those with `left_ms` left, in
    /// the order in which they are served.
    pub(crate) fn cost_ms(
        self,
        place: Place,
        price: &mut Price,
        needs: Needs,
        size_ms: f64,
        left_ms: impl Iterator<Item = f64> + Clone,
    ) -> f64 {
        let Place {
            cores,
            speed,
            present,
            pressure,
        } = place;
        let look_ahead = self.look_ahead;
        let cost = price.cost(size_ms, left_ms.clone());
        let mut sum_ms = cost.own_ms;
        if self.marginal {
            sum_ms += match price {
                Price::Sharing(_) => cost.others_ms - look_ahead * size_ms * (1.0 / cores).max(1.0),
                // A long job in front keeps many waiting: it belongs where there are more servers.
                Price::Queue(_) if look_ahead > 0.0 => {
                    let typical_ms = needs.typical_ms;
                    let waits = 0.2 * size_ms * left_ms.sum::<f64>() / (cores * cores * typical_ms);
                    let blocks = 0.12 * size_ms * size_ms / (cores * typical_ms);
                    pressure * (waits + blocks) * speed
                }
                Price::Queue(_) => 0.0,
            };
        }
        (sum_ms + CROWD_MS * (present + 1.0) / cores) / speed
    }
}

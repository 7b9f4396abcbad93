//! One price for both disciplines, from the jobs at a backend.

use super::cost::{Cost, Queue, Sharing};
use super::jobs::Discipline;
use crate::registry::{Kind, Parameter, Spec};

/// The parameter `discipline`.
pub(crate) const DISCIPLINE: Parameter = Parameter {
    name: "discipline",
    kind: Kind::Word(&["ps", "fcfs"]),
    or: &[],
    default: "ps",
    summary: "how workers serve: all at once, or in order",
};

/// Whether `discipline` says first come, first served.
pub(crate) fn serves_in_order(spec: &Spec) -> bool {
    spec.is("discipline", "fcfs")
}

/// What a placement costs at a backend of so many cores.
#[derive(Debug, Clone)]
pub enum Price {
    /// Processor sharing.
    Sharing(Sharing),
    /// First come, first served.
    Queue(Queue),
}

impl Price {
    /// For a backend of `cores` cores, above 0; `in_order`: first come, first served.
    pub fn new(cores: f64, in_order: bool) -> Self {
        if in_order {
            Self::Queue(Queue::new(cores))
        } else {
            Self::Sharing(Sharing::new(cores))
        }
    }

    /// The cores it was made for.
    pub(crate) fn cores(&self) -> f64 {
        match self {
            Self::Sharing(sharing) => sharing.cores(),
            Self::Queue(queue) => queue.cores(),
        }
    }

    /// How its jobs run.
    pub(crate) fn discipline(&self) -> Discipline {
        match self {
            Self::Sharing(_) => Discipline::Sharing,
            Self::Queue(queue) => Discipline::Queue(queue.servers()),
        }
    }

    /// The cost of a job of `size_ms` core-ms beside those with `left_ms` left, in service order.
    pub fn cost(&mut self, size_ms: f64, left_ms: impl Iterator<Item = f64>) -> Cost {
        match self {
            Self::Sharing(sharing) => sharing.cost(size_ms, left_ms),
            Self::Queue(queue) => Cost {
                own_ms: queue.finish_ms(size_ms, left_ms),
                others_ms: 0.0,
            },
        }
    }
}

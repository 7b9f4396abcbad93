//! Which class a request is of and how much work it takes.

use super::draws::Draws;
use super::setup::{Class, Setup};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use schema::rng::{Purpose, stream, unit};

/// Which class request i is of and how much work it takes, drawn at its arrival.
#[derive(Debug)]
pub(super) struct Sizes {
    factors: Draws,
    choice: ChaCha8Rng,
    /// Cumulative shares of the classes; empty if there is one.
    cumulative: Vec<f64>,
}

impl Sizes {
    pub(super) fn new(setup: &Setup) -> Self {
        let total: f64 = setup.classes.iter().map(|c| c.share).sum();
        let mut sum = 0.0;
        let mut up_to = |class: &Class| {
            sum += class.share / total;
            sum
        };
        let cumulative = match &setup.classes[..] {
            [_] => Vec::new(),
            many => many.iter().map(&mut up_to).collect(),
        };
        Self {
            factors: Draws::new(setup.sizes, stream(setup.seed, Purpose::Sizes, 0, 0)),
            choice: stream(setup.seed, Purpose::ApiChoice, 0, 0),
            cumulative,
        }
    }

    /// The class of the next request.
    #[inline(always)]
    pub(super) fn class(&mut self) -> u32 {
        if self.cumulative.is_empty() {
            return 0;
        }
        let u = unit(&mut self.choice as &mut dyn RngCore);
        let place = self.cumulative.partition_point(|c| *c <= u);
        place.min(self.cumulative.len() - 1) as u32
    }

    /// The size of the next request relative to its class's mean.
    #[inline(always)]
    pub(super) fn factor(&mut self) -> f64 {
        self.factors.next()
    }
}

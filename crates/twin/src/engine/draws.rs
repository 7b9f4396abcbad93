//! Draws of a law made ahead, a block at a time: the same numbers in the same order, at a fraction of the
//! cost of stopping for each.

use rand_chacha::ChaCha8Rng;
use schema::laws::sizes::SizeLaw;

const BLOCK: usize = 64;

/// A stream of draws of one law.
#[derive(Debug)]
pub(super) struct Draws {
    law: SizeLaw,
    rng: ChaCha8Rng,
    ready: [f64; BLOCK],
    at: usize,
}

impl Draws {
    /// Nobody else draws from `rng`, so it may be ahead.
    pub(super) fn new(law: SizeLaw, rng: ChaCha8Rng) -> Self {
        Self {
            law,
            rng,
            ready: [0.0; BLOCK],
            at: BLOCK,
        }
    }

    pub(super) fn law(&self) -> SizeLaw {
        self.law
    }

    /// The next one.
    #[inline(always)]
    pub(super) fn next(&mut self) -> f64 {
        if self.at == BLOCK {
            self.refill();
        }
        let draw = self.ready[self.at % BLOCK];
        self.at += 1;
        draw
    }

    #[inline(never)]
    fn refill(&mut self) {
        self.law.fill(&mut self.rng, &mut self.ready[..]);
        self.at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Draws};
    use schema::laws::sizes::SizeLaw;
    use schema::rng::{Purpose, stream};

    #[test]
    fn draws_made_ahead_are_those_made_one_by_one() {
        for law in [
            SizeLaw::Constant,
            SizeLaw::Exponential,
            SizeLaw::log_normal(0.5),
            SizeLaw::hyperexponential(10.0),
        ] {
            let mut rng = stream(3, Purpose::Sizes, 0, 0);
            let mut draws = Draws::new(law, rng.clone());
            for _ in 0..3 * BLOCK + 1 {
                assert_eq!(draws.next().to_bits(), law.draw(&mut rng).to_bits());
            }
        }
    }
}

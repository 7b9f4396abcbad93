//! Sums of a run: compensated ones for what reaches results, plain ones that are emptied in time.

pub use evidence::Sum;

/// Numbers that the plain sum of a [`Tray`] may take: of numbers of one sign its error stays below 2^18 half
/// units in the last place, 3e-11 of the sum.
pub const TRAY: u64 = 1 << 18;

/// A sum for what is only checked: numbers gather in a plain sum, one operation each, that its owner
/// empties into a compensated one at least every [`TRAY`] numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tray {
    open: f64,
    closed: Sum,
}

impl Tray {
    /// Adds one number.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        self.open += x;
    }

    /// Empties the plain sum.
    pub fn empty(&mut self) {
        self.closed.add(self.open);
        self.open = 0.0;
    }

    /// The sum.
    pub fn value(&self) -> f64 {
        let mut all = self.closed;
        all.add(self.open);
        all.value()
    }
}

#[cfg(test)]
mod tests {
    use super::{Sum, TRAY, Tray};

    #[test]
    fn a_tray_emptied_in_time_is_exact_enough() {
        let (mut tray, mut sum) = (Tray::default(), Sum::default());
        for i in 0..10 * TRAY {
            let x = 0.1 + (i % 97) as f64 * 1e-3;
            tray.add(x);
            sum.add(x);
            if i % TRAY == TRAY - 1 {
                tray.empty();
            }
        }
        assert!((tray.value() / sum.value() - 1.0).abs() < 3e-11);
    }
}

//! Compensated summation (Kahan 1965, in Neumaier's form): the error does not grow with the count.

/// A running sum whose rounding errors are carried along.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    /// Adds one number.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        let total = self.total + x;
        // What the addition rounded away, exactly (Knuth's two-sum: no branch).
        let added = total - self.total;
        self.lost += (self.total - (total - added)) + (x - added);
        self.total = total;
    }

    /// The sum.
    #[inline]
    pub fn value(&self) -> f64 {
        self.total + self.lost
    }
}

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

    #[test]
    fn small_numbers_are_not_lost_beside_a_large_one() {
        let mut sum = Sum::default();
        sum.add(1e16);
        for _ in 0..1000 {
            sum.add(1.0);
        }
        sum.add(-1e16);
        assert_eq!(sum.value(), 1000.0);
        let naive = (0..1000).fold(1e16, |s, _| s + 1.0) - 1e16;
        assert_ne!(naive, 1000.0, "the plain sum loses them");
    }
}

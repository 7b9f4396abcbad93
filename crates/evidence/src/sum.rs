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

impl FromIterator<f64> for Sum {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sum = Self::default();
        values.into_iter().for_each(|v| sum.add(v));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;

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

//! Is one backend much worse than all the others together?
//!
//! Over the last ten seconds its share of failures must be at least 0.30 above theirs, and the
//! difference at least four of its standard deviations if both failed alike (pooled two-proportion
//! test). It works from two backends on and never fires when all fail alike. "So many standard
//! deviations from the mean of the pool" cannot: one odd backend of n is exactly sqrt(n - 1) of them
//! away, which is 1.41 for three.

use crate::time::Time;
use std::iter::Sum;

/// Buckets of the sliding window, one per second.
const BUCKETS: usize = 10;
const BUCKET_NS: u64 = 1_000_000_000;
/// Results on either side before anything is said.
const MIN_ATTEMPTS: u64 = 20;
/// Least difference of the failed shares, in tenths.
const MIN_DIFFERENCE_TENTHS: u64 = 3;
/// Least difference in standard deviations.
const MIN_DEVIATIONS: f64 = 4.0;

/// Results within a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) attempts: u64,
    pub(crate) failures: u64,
}

impl Counts {
    /// Cheap and necessary: others fail at least 0 % of the time.
    pub(crate) fn could_be_much_worse(self) -> bool {
        self.attempts >= MIN_ATTEMPTS && 10 * self.failures >= MIN_DIFFERENCE_TENTHS * self.attempts
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), |sum, c| Self {
            attempts: sum.attempts + c.attempts,
            failures: sum.failures + c.failures,
        })
    }
}

/// The rule.
pub(crate) fn is_much_worse(own: Counts, others: Counts) -> bool {
    if own.attempts < MIN_ATTEMPTS || others.attempts < MIN_ATTEMPTS {
        return false;
    }
    // Both shares over the common denominator, so that 0.30 means 0.30.
    let own_scaled = u128::from(own.failures) * u128::from(others.attempts);
    let others_scaled = u128::from(others.failures) * u128::from(own.attempts);
    let Some(difference) = own_scaled.checked_sub(others_scaled) else {
        return false;
    };
    let scale = u128::from(own.attempts) * u128::from(others.attempts);
    if 10 * difference < u128::from(MIN_DIFFERENCE_TENTHS) * scale {
        return false;
    }
    let (a, b) = (own.attempts as f64, others.attempts as f64);
    let pooled = (own.failures + others.failures) as f64 / (a + b);
    let variance = pooled * (1.0 - pooled) * (1.0 / a + 1.0 / b);
    let difference = difference as f64 / scale as f64;
    difference * difference >= MIN_DEVIATIONS * MIN_DEVIATIONS * variance
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    second: u64,
    counts: Counts,
}

/// The last ten seconds of one backend's results, the running second and nine whole ones before it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window([Bucket; BUCKETS]);

impl Window {
    /// Counts a result.
    pub(crate) fn add(&mut self, now: Time, failed: bool) {
        let second = now.as_nanos() / BUCKET_NS;
        let bucket = &mut self.0[second as usize % BUCKETS];
        if bucket.second != second {
            *bucket = Bucket {
                second,
                counts: Counts::default(),
            };
        }
        bucket.counts.attempts += 1;
        bucket.counts.failures += u64::from(failed);
    }

    /// What is within the window now.
    pub(crate) fn counts(&self, now: Time) -> Counts {
        let second = now.as_nanos() / BUCKET_NS;
        let recent = |b: &&Bucket| second - b.second < BUCKETS as u64;
        self.0.iter().filter(recent).map(|b| b.counts).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Window, is_much_worse};
    use crate::time::Time;

    fn worse((failures, attempts): (u64, u64), (f, a): (u64, u64)) -> bool {
        let own = Counts { attempts, failures };
        is_much_worse(
            own,
            Counts {
                attempts: a,
                failures: f,
            },
        )
    }

    #[test]
    fn the_rule_needs_both_a_difference_and_its_certainty() {
        for (own, others, expected) in [
            // z of 6/20 against 0/70: 4.74; of 5/20 the difference is below 0.30.
            ((6, 20), (0, 70), true),
            ((5, 20), (0, 70), false),
            // z of 10/20 against 4/20: 2.04.
            ((10, 20), (4, 20), false),
            // z of 9/20 against 0/20: 3.41; of 12/20: 4.14.
            ((9, 20), (0, 20), false),
            ((12, 20), (0, 20), true),
            // Too few on either side.
            ((19, 19), (0, 70), false),
            ((20, 20), (0, 19), false),
            // All fail alike; the others are worse.
            ((50, 50), (100, 100), false),
            ((0, 50), (100, 100), false),
            ((50, 50), (0, 100), true),
        ] {
            assert_eq!(worse(own, others), expected, "{own:?} against {others:?}");
        }
    }

    #[test]
    fn a_window_holds_the_running_second_and_nine_before_it() {
        let mut window = Window::default();
        let at = Time::from_millis;
        window.add(at(900), true);
        window.add(at(1_100), false);
        let counts = |attempts, failures| Counts { attempts, failures };
        assert_eq!(window.counts(at(1_100)), counts(2, 1));
        assert_eq!(window.counts(at(9_999)), counts(2, 1));
        assert_eq!(window.counts(at(10_000)), counts(1, 0));
        assert_eq!(window.counts(at(11_000)), counts(0, 0));
        window.add(at(20_500), true);
        assert_eq!(window.counts(at(20_500)), counts(1, 1));
    }
}

//! The newest arrivals, from which those to come are drawn.

use crate::measure::ms;
use crate::strategy::Rng;
use crate::time::Time;
use schema::rng::below;

/// Arrivals that are remembered, and how many must be before one is drawn.
const MOST: usize = 256;
const LEAST: usize = 20;

/// Gaps and classes of the newest own arrivals.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    arrivals: Vec<(f64, u32)>,
    oldest: usize,
    last: Option<Time>,
}

impl Recent {
    /// A request of this class arrives.
    pub(crate) fn note(&mut self, now: Time, class: u32) {
        let Some(last) = self.last.replace(now) else {
            return;
        };
        let arrival = (ms(now.since_ns(last)), class);
        if self.arrivals.len() < MOST {
            self.arrivals.push(arrival);
        } else {
            self.arrivals[self.oldest] = arrival;
            self.oldest = (self.oldest + 1) % MOST;
        }
    }

    /// Whether there are enough to draw from.
    pub(crate) fn is_known(&self) -> bool {
        self.arrivals.len() >= LEAST
    }

    /// One of them, each as likely: the time since the one before it, ms, and its class.
    pub(crate) fn one(&self, rng: &mut Rng) -> (f64, u32) {
        self.arrivals[below(rng, self.arrivals.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAST, MOST, Recent};
    use crate::time::Time;
    use schema::rng::{Purpose, stream};

    #[test]
    fn the_newest_are_drawn_and_no_others() {
        let mut recent = Recent::default();
        let mut rng = stream(1, Purpose::Strategy, 0, 0);
        for i in 0..=LEAST as u64 {
            assert!(!recent.is_known());
            recent.note(Time::from_millis(3 * i), 0);
        }
        assert!(recent.is_known());
        assert_eq!(recent.one(&mut rng), (3.0, 0));
        let from = recent.last.unwrap();
        for i in 1..=MOST as u64 {
            let gap_ns = if i == 1 { 7_000_000 } else { 5_000_000 * i };
            recent.note(from.plus_ns(gap_ns), 1);
        }
        assert!((0..1000).all(|_| recent.one(&mut rng).1 == 1));
        assert_eq!(recent.arrivals.len(), MOST);
    }
}

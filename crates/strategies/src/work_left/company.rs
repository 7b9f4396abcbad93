//! How much of what backends hold is other balancers'.

/// Part of the requests held that may be others' while own knowledge still tells the whole.
const MOST_OTHERS: f64 = 0.25;
/// Gain of the means.
const GAIN: f64 = 0.1;

/// Means of what was held when reports were made, and of how much of it was not own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Company {
    active: f64,
    others: f64,
}

impl Company {
    /// How many requests a backend says it holds, and how many of them are not own ones.
    pub(crate) fn note(&mut self, active: u32, others: u32) {
        self.active += GAIN * (f64::from(active) - self.active);
        self.others += GAIN * (f64::from(others) - self.others);
    }

    /// Whether others' requests are more than now and then an own one that overtook the question.
    pub(crate) fn is_there(&self) -> bool {
        self.others > MOST_OTHERS * self.active
    }
}

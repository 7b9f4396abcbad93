//! Tells when a strategy must do without the reports that it compares by, and when it has them again.

use std::time::{Duration, Instant};

/// It is named in the log this often at most, and as over after so long without.
const NAME_EVERY: Duration = Duration::from_secs(10);

/// How far the strategy's own count was seen, and when it was named.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    seen: u64,
    /// When it was last named, and when it last happened; `None` while all is well.
    lacking: Option<(Instant, Instant)>,
}

/// What is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Lacking,
    Back,
}

impl StandIns {
    /// Takes the strategy's count after a pick: how many are new, and what is to be said of it.
    pub(crate) fn count(&mut self, now: Instant, count: u64) -> (u64, Option<Word>) {
        // A strategy that was changed begins at 0.
        let new = count.checked_sub(self.seen).unwrap_or(count);
        self.seen = count;
        let long_ago = |at: Instant| now.duration_since(at) >= NAME_EVERY;
        let word = match self.lacking {
            None if new == 0 => None,
            Some((named, _)) if new > 0 && !long_ago(named) => {
                self.lacking = Some((named, now));
                None
            }
            _ if new > 0 => {
                self.lacking = Some((now, now));
                Some(Word::Lacking)
            }
            Some((_, last)) if long_ago(last) => {
                self.lacking = None;
                Some(Word::Back)
            }
            _ => None,
        };
        (new, word)
    }
}

#[cfg(test)]
mod tests {
    use super::{StandIns, Word};
    use std::time::{Duration, Instant};

    #[test]
    fn it_is_named_at_once_again_every_ten_seconds_and_as_over_after_ten_without() {
        let start = Instant::now();
        let mut stand_ins = StandIns::default();
        for (second, count, new, word) in [
            (0, 0, 0, None),
            (1, 1, 1, Some(Word::Lacking)),
            (2, 3, 2, None),
            (10, 4, 1, None),
            (11, 5, 1, Some(Word::Lacking)),
            (12, 5, 0, None),
            (20, 6, 1, None),
            (29, 6, 0, None),
            (30, 6, 0, Some(Word::Back)),
            (31, 6, 0, None),
            // Another strategy.
            (32, 2, 2, Some(Word::Lacking)),
            (33, 0, 0, None),
            (34, 1, 1, None),
        ] {
            let now = start + Duration::from_secs(second);
            assert_eq!(stand_ins.count(now, count), (new, word), "at {second} s");
        }
    }
}

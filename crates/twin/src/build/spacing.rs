//! What comes again and again may not come too often: a run would hardly get on.

use super::refuse;
use schema::duration;
use schema::problem::{Problem, Problems};
use std::time::Duration;

/// Most events for one request of what repeats by itself: polls, ends of quota periods, drifts. With more
/// a run of some thousand requests takes minutes.
const MOST_PER_REQUEST: f64 = 1e5;

/// What one kind of repeated event is measured against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Mean time between two requests, s.
    pub(super) gap: f64,
    /// Workers, each of which has the event.
    pub(super) workers: usize,
}

impl Pace {
    /// Refuses a time between two events that is too short; `each` of the workers has the event so many
    /// times.
    pub(super) fn check(self, field: &str, spacing: f64, each: u32) -> Result<(), Problems> {
        let loops = self.workers as f64 * f64::from(each);
        let least = loops * self.gap / MOST_PER_REQUEST;
        if spacing >= least {
            return Ok(());
        }
        let events = loops * self.gap / spacing;
        let text = |s: f64| duration::format(Duration::from_secs_f64(s));
        // Rounded up, so that what is allowed is.
        let allowed = text((least * 1e9).ceil() * 1e-9);
        let what = format!("makes {events:.1e} events for every request");
        refuse(
            Problem::new(field, text(spacing), what)
                .allowed(format!("{allowed} or more with these workers and requests")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn a_hundred_thousand_events_for_a_request_are_enough() {
        let pace = Pace {
            gap: 0.01,
            workers: 5,
        };
        // 5 workers, 2 balancers, a request every 10 ms: 1 us between polls makes 100,000 events.
        assert!(pace.check("poll", 1e-6, 2).is_ok());
        let error = pace.check("poll", 0.999e-6, 2).unwrap_err().to_string();
        assert!(error.contains("allowed: 1us or more"), "{error}");
        assert!(pace.check("poll", 1e-301, 1).is_err());
    }
}

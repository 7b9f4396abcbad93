//! The least latency that a trained model predicts from the newest poll, however old within reason.
//!
//! The predictive balancer of the paper: the model reads method, URL, cores, memory, polled active
//! requests and the mean of the last 50 latencies. Between polls nothing it reads changes, so it sends
//! the same class to the same backend: it herds by design. Cost O(n) look-ups. Not when there are
//! more than one or two arrivals per poll. Where a backend has told nothing for `max-age`, the fewest own
//! requests for its cores stand in. Source: Eng. Proc. 2026, 122(1), 26, which does not say what then.

use super::latency_model::{MAX_AGE, MODEL, POLLED, Seen};
use crate::backends::Backends;
use crate::registry::{Entry, Group, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::report::{Report, Source};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[MODEL, MAX_AGE],
    reads: &[Read::Poll, Read::InFlight, Read::Model],
    model: Some(POLLED),
    known_flaws: &["T13", "T18"],
    ..Entry::new(
        "plb-paper",
        Group::Predictive,
        "the least predicted latency as last polled: herds between polls",
        |spec, context| {
            let seen = Seen::new(spec, context, &POLLED, Source::Poll);
            Box::new(LeastPredicted { seen })
        },
    )
};

/// Least prediction from the newest report of one source; ties to the lowest position.
#[derive(Debug, Clone)]
pub(super) struct LeastPredicted {
    pub(super) seen: Seen,
}

impl Strategy for LeastPredicted {
    fn pick(
        &mut self,
        now: Time,
        request: &Request<'_>,
        backends: &Backends,
        _rng: &mut Rng,
    ) -> Option<BackendId> {
        if self.seen.lacks_any(now, backends) {
            return self.seen.stand_in(backends.eligible());
        }
        let ms = self.seen.predictions(request);
        let mut best: Option<(BackendId, f64)> = None;
        for backend in backends.eligible() {
            let ms = ms(backend.id);
            if best.is_none_or(|(_, least)| ms < least) {
                best = Some((backend.id, ms));
            }
        }
        best.map(|(id, _)| id)
    }

    fn predicted_ms(&self, backend: BackendId) -> Option<f64> {
        self.seen.predicted_ms(backend)
    }

    fn stand_ins(&self) -> u64 {
        self.seen.stand_ins()
    }

    fn on_stats(&mut self, _now: Time, id: BackendId, report: &Report, backends: &Backends) {
        self.seen.take(id, report, backends);
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.seen.on_backends_changed(backends);
    }
}

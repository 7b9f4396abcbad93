//! The least latency that a trained model predicts from the newest poll, however old within reason.
//!
//! The predictive balancer of the paper: the model reads method, URL, cores, memory, polled active
//! requests and the mean of the last 50 latencies. Between polls nothing it reads changes, so it sends
//! the same class to the same backend: it herds by design. Cost O(n) look-ups. Not when there are
//! more than one or two arrivals per poll. Where a backend has told nothing for `max-age`, the fewest own
//! requests for its cores stand in. Source: Eng. Proc. 2026, 122(1), 26, which does not say what then.

use super::latency_model::{Asked, MAX_AGE, MODEL, POLLED, Seen};
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
            Box::new(LeastPredicted {
                asked: Asked::new(spec, context, &POLLED),
                seen: Seen::new(spec, context, Source::Poll),
            })
        },
    )
};

/// Least prediction from the newest report of one source; ties to the lowest position.
#[derive(Debug, Clone)]
pub(super) struct LeastPredicted {
    pub(super) asked: Asked,
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
        if self.seen.lacks(now, backends.eligible()) {
            return self.seen.stand_in(&mut self.asked, backends.eligible());
        }
        let api = self.asked.api(request);
        let mut best: Option<(BackendId, f64)> = None;
        for backend in backends.eligible() {
            let ms = self.seen.predict(&mut self.asked, api, backend);
            if best.is_none_or(|(_, least)| ms < least) {
                best = Some((backend.id, ms));
            }
        }
        best.map(|(id, _)| id)
    }

    fn predicted_ms(&self, backend: BackendId) -> Option<f64> {
        self.asked.predicted_ms(backend)
    }

    fn stand_ins(&self) -> u64 {
        self.seen.stand_ins()
    }

    fn on_stats(&mut self, _now: Time, id: BackendId, report: &Report, backends: &Backends) {
        self.seen.take(&self.asked, id, report, backends);
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.asked.on_backends_changed(backends);
    }
}

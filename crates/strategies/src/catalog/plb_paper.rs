//! The least latency that a trained model predicts from the newest poll, however old.
//!
//! The predictive balancer of the paper: the model reads method, URL, cores, memory, polled active
//! requests and the mean of the last 50 latencies. Between polls nothing it reads changes, so it sends
//! the same class to the same backend: it herds by design. Cost O(n) look-ups. Not when there are
//! more than one or two arrivals per poll. Source: Eng. Proc. 2026, 122(1), 26.

use super::latency_model::{Asked, MODEL, POLLED, Seen, active_and_mean};
use crate::backends::Backends;
use crate::registry::{Entry, Group, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::report::{Report, Source};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[MODEL],
    reads: &[Read::Poll, Read::Model],
    model: Some(POLLED),
    known_flaws: &["T13", "T18"],
    ..Entry::new(
        "plb-paper",
        Group::Predictive,
        "the least predicted latency as last polled: herds between polls",
        |spec, context| {
            Box::new(LeastPredicted {
                asked: Asked::new(spec, context, &POLLED),
                seen: Seen::default(),
                source: Source::Poll,
                inputs: active_and_mean,
            })
        },
    )
};

/// Least prediction from the newest report of one source; ties to the lowest position.
#[derive(Debug, Clone)]
pub(super) struct LeastPredicted {
    pub(super) asked: Asked,
    pub(super) seen: Seen,
    pub(super) source: Source,
    pub(super) inputs: fn(&Report) -> (f64, f64),
}

impl Strategy for LeastPredicted {
    fn pick(
        &mut self,
        _now: Time,
        request: &Request<'_>,
        backends: &Backends,
        _rng: &mut Rng,
    ) -> Option<BackendId> {
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

    fn on_stats(&mut self, _now: Time, id: BackendId, report: &Report, _backends: &Backends) {
        if report.source == self.source {
            self.seen.take(&self.asked, id, (self.inputs)(report));
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.asked.on_backends_changed(backends);
    }
}

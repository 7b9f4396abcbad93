//! `plb-paper` between two drawn at random.
//!
//! A herd breaker: it halves the harm of old data and costs a little when data are fresh. Use only
//! with more than two arrivals per poll and no live count. Cost O(1). Source: ours.

use super::latency_model::{Asked, MODEL, POLLED, Seen, active_and_mean};
use crate::backends::Backends;
use crate::registry::{Entry, Group, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::report::{Report, Source};
use schema::rng::distinct_pair;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[MODEL],
    reads: &[Read::Poll, Read::Model],
    randomized: |_| true,
    model: Some(POLLED),
    known_flaws: &["T13"],
    ..Entry::new(
        "plb-p2c",
        Group::Predictive,
        "of two distinct at random the one with the lower predicted latency as last polled",
        |spec, context| {
            Box::new(TwoPredicted {
                asked: Asked::new(spec, context, &POLLED),
                seen: Seen::default(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct TwoPredicted {
    asked: Asked,
    seen: Seen,
}

impl Strategy for TwoPredicted {
    fn pick(
        &mut self,
        _now: Time,
        request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let n = backends.eligible_len() as u64;
        if n < 2 {
            return backends.eligible().next().map(|b| b.id);
        }
        let api = self.asked.api(request);
        let (first, second) = distinct_pair(rng, n);
        let (first, second) = (
            backends.eligible_at(first as usize),
            backends.eligible_at(second as usize),
        );
        let first_ms = self.seen.predict(&mut self.asked, api, first);
        let second_ms = self.seen.predict(&mut self.asked, api, second);
        Some(if second_ms < first_ms { second } else { first }.id)
    }

    fn predicted_ms(&self, backend: BackendId) -> Option<f64> {
        self.asked.predicted_ms(backend)
    }

    fn on_stats(&mut self, _now: Time, id: BackendId, report: &Report, _backends: &Backends) {
        if report.source == Source::Poll {
            self.seen.take(&self.asked, id, active_and_mean(report));
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.asked.on_backends_changed(backends);
    }
}

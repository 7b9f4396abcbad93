//! `plb-paper` between two drawn at random.
//!
//! A herd breaker: it halves the harm of old data and costs a little when data are fresh. Use only
//! with more than two arrivals per poll and no live count. Cost O(1). Source: ours.

use super::latency_model::{Asked, MAX_AGE, MODEL, POLLED, Seen};
use crate::backends::Backends;
use crate::registry::{Entry, Group, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::report::{Report, Source};
use schema::rng::distinct_pair;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[MODEL, MAX_AGE],
    reads: &[Read::Poll, Read::InFlight, Read::Model],
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
                seen: Seen::new(spec, context, Source::Poll),
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
        now: Time,
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
        if self.seen.lacks(now, [first, second].into_iter()) {
            let drawn = [first, second].into_iter();
            return self.seen.stand_in(&mut self.asked, drawn);
        }
        let first_ms = self.seen.predict(&mut self.asked, api, first);
        let second_ms = self.seen.predict(&mut self.asked, api, second);
        Some(if second_ms < first_ms { second } else { first }.id)
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

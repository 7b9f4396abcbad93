//! `plb-paper` between two drawn at random.
//!
//! A herd breaker: it halves the harm of old data and costs a little when data are fresh. Use only
//! with more than two arrivals per poll and no live count. Cost O(1). Source: ours.

use super::latency_model::{MAX_AGE, MODEL, POLLED, Seen};
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
            let seen = Seen::new(spec, context, &POLLED, Source::Poll);
            Box::new(TwoPredicted { seen })
        },
    )
};

#[derive(Debug, Clone)]
struct TwoPredicted {
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
        let (first, second) = distinct_pair(rng, n);
        let (first, second) = (
            backends.eligible_at(first as usize),
            backends.eligible_at(second as usize),
        );
        if self.seen.lacks(now, [first, second].into_iter()) {
            let drawn = [first, second].into_iter();
            return self.seen.stand_in(drawn);
        }
        let ms = self.seen.predictions(request);
        let is_second = ms(second.id) < ms(first.id);
        Some(if is_second { second } else { first }.id)
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

//! `plb-paper` spread out: a draw by exp(-(prediction - least) / temperature).
//!
//! A herd breaker: it halves the harm of old data and costs a little when data are fresh. Use only
//! with more than two arrivals per poll and no live count. Cost O(n) look-ups. Source: ours.

use super::latency_model::{MAX_AGE, MODEL, POLLED, Seen};
use crate::backends::Backends;
use crate::registry::{Entry, Group, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::report::{Report, Source};
use schema::rng::{below, unit};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        MODEL,
        Parameter {
            name: "temperature",
            kind: Kind::Duration {
                min_ns: 1_000_000,
                max_ns: 10_000_000_000,
            },
            or: &[],
            default: "40ms",
            summary: "difference of predictions that makes one e times as likely",
        },
        MAX_AGE,
    ],
    reads: &[Read::Poll, Read::InFlight, Read::Model],
    randomized: |_| true,
    model: Some(POLLED),
    known_flaws: &["T13"],
    ..Entry::new(
        "plb-softmax",
        Group::Predictive,
        "a draw that favors low predicted latency as last polled",
        |spec, context| {
            Box::new(Softmax {
                seen: Seen::new(spec, context, &POLLED, Source::Poll),
                temperature_ms: spec.duration_ns("temperature").unwrap_or(40_000_000) as f64 / 1e6,
                weighed: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct Softmax {
    seen: Seen,
    temperature_ms: f64,
    weighed: Vec<(BackendId, f64)>,
}

impl Strategy for Softmax {
    fn pick(
        &mut self,
        now: Time,
        request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if self.seen.lacks_any(now, backends) {
            // Of equals another one each time.
            let n = backends.eligible_len();
            let first = below(rng, n as u64) as usize;
            let from_there = (0..n).map(|i| backends.eligible_at((first + i) % n));
            return self.seen.stand_in(from_there);
        }
        let ms = self.seen.predictions(request);
        let of_each = backends.eligible().map(|b| (b.id, ms(b.id)));
        self.weighed.clear();
        self.weighed.extend(of_each);
        let each_ms = self.weighed.iter().map(|w| w.1);
        let least = each_ms.fold(f64::INFINITY, f64::min);
        let mut sum = 0.0;
        for (_, weight) in &mut self.weighed {
            sum += libm::exp(-(*weight - least) / self.temperature_ms);
            *weight = sum;
        }
        let drawn = match self.weighed.len() {
            0 | 1 => 0,
            _ => {
                let r = unit(rng) * sum;
                let at = self.weighed.partition_point(|(_, up_to)| *up_to <= r);
                at.min(self.weighed.len() - 1)
            }
        };
        self.weighed.get(drawn).map(|(id, _)| *id)
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
        self.weighed.reserve(backends.ids_len());
    }
}

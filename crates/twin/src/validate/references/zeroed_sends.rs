//! A trap: polled counts plus own sends since the **arrival** of the report instead of since its sample.
//! Requests sent while the answer was under way are not in the sample and are forgotten, so the emptiest
//! looks emptier than it is. Otherwise least (b + own sends + 1)/w, as `polled-own-sends:subtract-done=off`.

use super::{entry, least};
use schema::report::Report;
use strategies::registry::{Entry, Read};
use strategies::strategy::Rng;
use strategies::{BackendId, Backends, Request, Strategy, Time};

/// The wrong rule.
pub(in crate::validate) static ENTRY: Entry = entry("zeroed-sends", &[Read::Poll], |_, _| {
    Box::new(ZeroedSends {
        sent_at_arrival: Vec::new(),
    })
});

#[derive(Debug, Clone)]
struct ZeroedSends {
    sent_at_arrival: Vec<u64>,
}

impl Strategy for ZeroedSends {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        least(backends, rng, 0.0, |b| {
            let active = b.newest_stats().and_then(|r| r.active).unwrap_or(0);
            let own = b.sent - self.sent_at_arrival[b.id.index()];
            (u64::from(active) + own + 1) as f64 / f64::from(b.weight)
        })
    }

    fn on_stats(&mut self, _now: Time, id: BackendId, _report: &Report, backends: &Backends) {
        self.sent_at_arrival[id.index()] = backends.get(id).map_or(0, |b| b.sent);
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.sent_at_arrival.resize(backends.ids_len(), 0);
    }
}

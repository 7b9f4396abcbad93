//! Rendezvous hashing: every backend scores the key, the best score wins.
//!
//! score = weight / -ln(u), u from the hash of key and name. Cost O(n) and no state at all; a member
//! that comes or goes moves exactly its own keys. Not for large pools. Source: Thaler and Ravishankar
//! 1998; the weighted form as in Traefik.

use super::key::{self, Key, KeyRoom, hash64};
use super::request_hash::Keyless;
use crate::backends::{Backend, Backends};
use crate::registry::{Entry, Group, HonorsWeights};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[key::PARAMETER],
    needs_key: true,
    honors_weights: HonorsWeights::Yes,
    ..Entry::new(
        "rendezvous",
        Group::KeyBased,
        "the backend with the best weighted score for the key",
        |spec, _| {
            Box::new(Rendezvous {
                key: Key::of(spec),
                room: KeyRoom::default(),
                keyless: Keyless::default(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct Rendezvous {
    key: Key,
    room: KeyRoom,
    keyless: Keyless,
}

fn score(key: &[u8], backend: &Backend) -> f64 {
    let hash = hash64(0, &[key, &[0], backend.name.as_bytes()]);
    // The middle of one of 2^53 cells: never 0, never 1.
    let u = ((hash >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64);
    f64::from(backend.weight) / -libm::log(u)
}

impl Strategy for Rendezvous {
    fn pick(
        &mut self,
        _now: Time,
        request: &Request<'_>,
        backends: &Backends,
        _rng: &mut Rng,
    ) -> Option<BackendId> {
        let Some(key) = self.key.in_request(request, &mut self.room) else {
            return self.keyless.pick(backends);
        };
        let mut best: Option<(f64, BackendId)> = None;
        for backend in backends.eligible() {
            let score = score(key, backend);
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, backend.id));
            }
        }
        best.map(|(_, id)| id)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.keyless.on_backends_changed(backends);
    }
}

//! Rendezvous hashing: every backend scores the key, the best score wins.
//!
//! score = weight / -ln(u), u from the hash of key and name. Cost O(n) and no state at all; a member
//! that comes or goes moves exactly its own keys. Not for large pools. Source: Thaler and Ravishankar
//! 1998; the weighted form as in Traefik.

use super::key::{self, Key, KeyRoom, hash64};
use super::request_hash::Keyless;
use crate::backends::Backends;
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
                text: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct Rendezvous {
    key: Key,
    room: KeyRoom,
    keyless: Keyless,
    /// Key, zero byte, name.
    text: Vec<u8>,
}

/// The best so far.
#[derive(Debug, Clone, Copy)]
struct Best {
    id: BackendId,
    weight: u32,
    u: f64,
    score: f64,
}

/// The middle of one of 2^53 cells: never 0, never 1. Grows with the score among equal weights.
fn uniform(hash: u64) -> f64 {
    ((hash >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64)
}

fn score(weight: u32, u: f64) -> f64 {
    f64::from(weight) / -libm::log(u)
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
        self.text.clear();
        self.text.extend_from_slice(key);
        self.text.push(0);
        let key_length = self.text.len();
        let mut best: Option<Best> = None;
        for backend in backends.eligible() {
            self.text.truncate(key_length);
            self.text.extend_from_slice(backend.name.as_bytes());
            let u = uniform(hash64(0, &[&self.text]));
            // Neither heavier nor higher: no logarithm needed.
            if best.is_some_and(|b| backend.weight <= b.weight && u <= b.u) {
                continue;
            }
            let score = score(backend.weight, u);
            if best.is_none_or(|b| score > b.score) {
                best = Some(Best {
                    id: backend.id,
                    weight: backend.weight,
                    u,
                    score,
                });
            }
        }
        best.map(|b| b.id)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.keyless.on_backends_changed(backends);
    }
}

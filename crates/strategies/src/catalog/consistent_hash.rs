//! Consistent hashing on a ketama ring: the owner of the first point at or after the key's hash.
//!
//! Cost O(log points). A member that comes or goes moves only its own share of the keys; a drained or
//! ejected one keeps its points and is walked over. Not when keys are few or some are hot: use
//! `bounded-load`. Source: nginx `hash ... consistent`, point for point.

use super::key::{self, Key, KeyRoom};
use super::request_hash::Keyless;
use super::ring::{self, Ring};
use crate::backends::Backends;
use crate::registry::{Entry, Group, HonorsWeights};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[key::PARAMETER, ring::PARAMETER],
    needs_key: true,
    honors_weights: HonorsWeights::Yes,
    check: ring::check,
    ..Entry::new(
        "consistent-hash",
        Group::KeyBased,
        "the owner of the key's place on a ketama ring",
        |spec, _| {
            Box::new(ConsistentHash {
                key: Key::of(spec),
                room: KeyRoom::default(),
                keyless: Keyless::default(),
                ring: Ring::of(spec),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct ConsistentHash {
    key: Key,
    room: KeyRoom,
    keyless: Keyless,
    ring: Ring,
}

impl Strategy for ConsistentHash {
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
        let owner = self.ring.walk(key).find(|id| backends.is_eligible(*id));
        // Only a member whose every point collided with an earlier one has no place on the ring.
        owner.or_else(|| self.keyless.pick(backends))
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.keyless.on_backends_changed(backends);
        self.ring.on_backends_changed(backends);
    }
}

//! The backend whose block of the weights the key's hash falls into; hashed again if it is out.
//!
//! Cost O(log n). While a backend is out only its keys move; but adding or removing a member moves
//! nearly all keys: use `consistent-hash` where that hurts. Source: nginx `hash` without `consistent`
//! (the rule of Cache::Memcached), and the common hash of URL, user or address.

use super::key::{self, Key, KeyRoom, crc32};
use crate::backends::Backends;
use crate::choose::Credits;
use crate::registry::{Entry, Group, HonorsWeights};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Hashes tried again at most before the key is given up.
const MAX_REHASHES: u32 = 20;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[key::PARAMETER],
    needs_key: true,
    honors_weights: HonorsWeights::Yes,
    ..Entry::new(
        "request-hash",
        Group::KeyBased,
        "the block of the weights that the key's hash falls into",
        |spec, _| {
            Box::new(RequestHash {
                key: Key::of(spec),
                room: KeyRoom::default(),
                keyless: Keyless::default(),
                block_ends: Vec::new(),
            })
        },
    )
};

/// Requests without a key, and those whose key leads nowhere: by weight in turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Keyless(Credits);

impl Keyless {
    pub(super) fn pick(&mut self, backends: &Backends) -> Option<BackendId> {
        self.0.step_over(backends.eligible())
    }

    pub(super) fn on_backends_changed(&mut self, backends: &Backends) {
        self.0.on_backends_changed(backends);
    }
}

#[derive(Debug, Clone)]
struct RequestHash {
    key: Key,
    room: KeyRoom,
    keyless: Keyless,
    /// Where each member's block ends, and whose it is.
    block_ends: Vec<(u64, BackendId)>,
}

/// The digits of a small number.
fn digits(number: u32) -> ([u8; 2], usize) {
    let (tens, ones) = ((number / 10) as u8, (number % 10) as u8);
    match number {
        0..10 => ([b'0' + ones, 0], 1),
        _ => ([b'0' + tens, b'0' + ones], 2),
    }
}

impl Strategy for RequestHash {
    fn pick(
        &mut self,
        _now: Time,
        request: &Request<'_>,
        backends: &Backends,
        _rng: &mut Rng,
    ) -> Option<BackendId> {
        let key = self.key.in_request(request, &mut self.room);
        let (Some(key), Some((sum, _))) = (key, self.block_ends.last()) else {
            return self.keyless.pick(backends);
        };
        let mut hash = 0_u32;
        for attempt in 0..=MAX_REHASHES {
            let (digits, length) = digits(attempt);
            let rehash = if attempt == 0 {
                &[][..]
            } else {
                &digits[..length]
            };
            hash = hash.wrapping_add((crc32(&[rehash, key]) >> 16) & 0x7fff);
            let at = u64::from(hash) % sum;
            let block = self.block_ends.partition_point(|(end, _)| *end <= at);
            let id = self.block_ends[block].1;
            if backends.is_eligible(id) {
                return Some(id);
            }
        }
        self.keyless.pick(backends)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.keyless.on_backends_changed(backends);
        self.block_ends.clear();
        let mut end = 0;
        for backend in backends.members() {
            end += u64::from(backend.weight);
            self.block_ends.push((end, backend.id));
        }
    }
}

//! Maglev hashing: a table of slots filled evenly by weight; a key's slot names its backend.
//!
//! Cost O(1); the table takes O(slots + members) per membership or weight change. Keys are spread more
//! evenly than on a ring, and a few more of them move when a member comes or goes. The table should
//! exceed a hundred slots per member. Source: Eisenbud et al. 2016, Envoy; weights are honored in
//! every round of filling.

use super::key::{self, Key, KeyRoom, hash64};
use super::request_hash::Keyless;
use crate::backends::{Backend, Backends};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Fewer slots per backend than this are uneven, as the authors say.
const SLOTS_PER_BACKEND: u64 = 100;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        key::PARAMETER,
        Parameter {
            name: "table",
            kind: Kind::Prime {
                min: 7,
                max: 5_000_011,
            },
            or: &[],
            default: "65537",
            summary: "slots of the table; at least a hundred per backend",
        },
    ],
    needs_key: true,
    honors_weights: HonorsWeights::Yes,
    caution,
    ..Entry::new(
        "maglev",
        Group::KeyBased,
        "the owner of the key's slot in an evenly filled table",
        |spec, _| {
            Box::new(Maglev {
                key: Key::of(spec),
                room: KeyRoom::default(),
                keyless: Keyless::default(),
                length: spec.integer("table").unwrap_or(65_537),
                slots: Vec::new(),
                made_for: Vec::new(),
            })
        },
    )
};

/// A table of few slots per backend is filled unevenly.
fn caution(spec: &Spec, backends: &Backends) -> Option<String> {
    let slots = spec.integer("table").unwrap_or(0);
    let wanted = SLOTS_PER_BACKEND * backends.members().len() as u64;
    (slots <= wanted).then(|| {
        format!(
            "maglev: a table of {slots} slots is uneven for {} backends; set table to a prime above {wanted}",
            backends.members().len()
        )
    })
}

#[derive(Debug, Clone)]
struct Maglev {
    key: Key,
    room: KeyRoom,
    keyless: Keyless,
    length: u64,
    slots: Vec<BackendId>,
    /// Whom the slots were filled for.
    made_for: Vec<(BackendId, u32)>,
}

/// A member's walk through the slots while the table is filled.
struct Claim {
    id: BackendId,
    weight: u64,
    credit: u64,
    next: u64,
    skip: u64,
}

impl Claim {
    fn new(backend: &Backend, length: u64) -> Self {
        let name = backend.name.as_bytes();
        Self {
            id: backend.id,
            weight: u64::from(backend.weight),
            credit: 0,
            next: hash64(0, &[name]) % length,
            skip: hash64(1, &[name]) % (length - 1) + 1,
        }
    }
}

/// Fills the slots in rounds: each member adds its weight to its credit and claims its next free slot
/// once the credit reaches the largest weight.
pub(crate) fn fill(backends: &Backends, length: u64) -> Vec<BackendId> {
    let mut members: Vec<&Backend> = backends.members().collect();
    members.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let mut claims: Vec<Claim> = members.iter().map(|b| Claim::new(b, length)).collect();
    let largest = claims.iter().map(|c| c.weight).max().unwrap_or(1);
    let mut slots: Vec<Option<BackendId>> = vec![None; length as usize];
    let mut free = if claims.is_empty() { 0 } else { length };
    while free > 0 {
        for claim in &mut claims {
            claim.credit += claim.weight;
            if claim.credit < largest || free == 0 {
                continue;
            }
            claim.credit -= largest;
            while slots[claim.next as usize].is_some() {
                claim.next = (claim.next + claim.skip) % length;
            }
            slots[claim.next as usize] = Some(claim.id);
            claim.next = (claim.next + claim.skip) % length;
            free -= 1;
        }
    }
    slots.into_iter().flatten().collect()
}

impl Strategy for Maglev {
    fn pick(
        &mut self,
        _now: Time,
        request: &Request<'_>,
        backends: &Backends,
        _rng: &mut Rng,
    ) -> Option<BackendId> {
        let key = self.key.in_request(request, &mut self.room);
        let Some(key) = key.filter(|_| !self.slots.is_empty()) else {
            return self.keyless.pick(backends);
        };
        let at = (hash64(0, &[key]) % self.length) as usize;
        let (before, from) = self.slots.split_at(at);
        let mut owners = from.iter().chain(before);
        let owner = owners.find(|id| backends.is_eligible(**id)).copied();
        // A table shorter than the pool leaves some members without a slot.
        owner.or_else(|| self.keyless.pick(backends))
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.keyless.on_backends_changed(backends);
        let members = || backends.members().map(|b| (b.id, b.weight));
        if !members().eq(self.made_for.iter().copied()) {
            self.made_for = members().collect();
            self.slots = fill(backends, self.length);
        }
    }
}

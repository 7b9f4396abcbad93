//! Consistent hashing with bounded loads: walk on from the key's owner while that one is full.
//!
//! A backend is full at `factor` times its weighted share of all requests in flight. Cost O(log
//! points + owners passed over). Not when a key must never leave its owner. Source: Mirrokni, Thorup
//! and Zadimoghaddam 2018; HAProxy `hash-balance-factor`.

use super::key::{self, Key, KeyRoom};
use super::request_hash::Keyless;
use super::ring::{self, Ring};
use crate::backends::{Backend, Backends};
use crate::choose::weight_sum;
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        key::PARAMETER,
        ring::PARAMETER,
        Parameter {
            name: "factor",
            kind: Kind::Decimal {
                min: 1.01,
                max: 10.0,
            },
            or: &[],
            default: "1.25",
            summary: "how far above its share of the load a backend may go",
        },
    ],
    reads: &[Read::InFlight],
    needs_key: true,
    honors_weights: HonorsWeights::Yes,
    check: ring::check,
    ..Entry::new(
        "bounded-load",
        Group::KeyBased,
        "the key's owner on a ketama ring, or the next one that is not above its share",
        |spec, _| {
            Box::new(BoundedLoad {
                key: Key::of(spec),
                room: KeyRoom::default(),
                keyless: Keyless::default(),
                ring: Ring::of(spec),
                factor: spec.decimal("factor").unwrap_or(1.25),
                weights: 0,
                in_flight: 0,
            })
        },
    )
};

#[derive(Debug, Clone)]
struct BoundedLoad {
    key: Key,
    room: KeyRoom,
    keyless: Keyless,
    ring: Ring,
    factor: f64,
    /// Sum over the available.
    weights: u64,
    /// Sum over the available.
    in_flight: u64,
}

/// Most requests a backend of this weight may hold when one more is placed.
pub(crate) fn cap(factor: f64, in_flight: u64, weight: u32, weights: u64) -> f64 {
    libm::ceil(factor * (in_flight + 1) as f64 * f64::from(weight) / weights as f64)
}

fn sums<'a>(backends: impl Iterator<Item = &'a Backend> + Clone) -> (u64, u64) {
    let in_flight = backends.clone().map(|b| u64::from(b.in_flight)).sum();
    (weight_sum(backends), in_flight)
}

impl Strategy for BoundedLoad {
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
        let out = backends.left_out().filter_map(|id| backends.get(id));
        let (out_weights, out_in_flight) = sums(out);
        let weights = self.weights - out_weights;
        let in_flight = self.in_flight - out_in_flight;
        let has_room = |b: &Backend| {
            f64::from(b.in_flight) + 1.0 <= cap(self.factor, in_flight, b.weight, weights)
        };
        let mut owners = self.ring.walk(key).filter(|id| backends.is_eligible(*id));
        let owner = owners.find(|id| backends.get(*id).is_some_and(has_room));
        owner.or_else(|| self.keyless.pick(backends))
    }

    fn on_dispatch(
        &mut self,
        _now: Time,
        id: BackendId,
        _request: &Request<'_>,
        backends: &Backends,
    ) {
        // A draining or removed backend's requests are not among the available ones' sum.
        if backends.available_place(id).is_some() {
            self.in_flight += 1;
        }
    }

    fn on_response(&mut self, _now: Time, id: BackendId, _outcome: &Outcome, backends: &Backends) {
        if backends.available_place(id).is_some() {
            self.in_flight -= 1;
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.keyless.on_backends_changed(backends);
        self.ring.on_backends_changed(backends);
        (self.weights, self.in_flight) = sums(backends.available());
    }
}

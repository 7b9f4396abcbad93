//! Stride scheduling on static weights: a rotation that passes over light backends in most rounds.
//!
//! Cost O(1) when weights are close, at most n steps otherwise; O(log n) above 16 backends. The state is
//! one number, so many callers could share it without a lock. Not when shares must be exact over few requests: over a
//! million it is off by up to two. Source: grpc-go and gRPC C++ (`weighted_round_robin`).

use super::start::{self, Start};
use super::stride::{FULL, Stride};
use crate::backends::Backends;
use crate::registry::{Entry, Group, HonorsWeights};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::rng::below;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[start::PARAMETER],
    randomized: |spec| spec.is("start", "random"),
    honors_weights: HonorsWeights::Yes,
    ..Entry::new(
        "static-stride",
        Group::LoadBlind,
        "a rotation that passes over light backends in most rounds (ABCACABAB)",
        |spec, context| {
            Box::new(StaticStride {
                start: Start::of(spec),
                stride: Stride::new(context.few),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct StaticStride {
    start: Start,
    stride: Stride,
}

impl Strategy for StaticStride {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if backends.eligible_len() > 0 && self.start.take_random() {
            match start::picks_to_discard(start::period(backends.available()), rng) {
                Some(picks) => {
                    for _ in 0..picks {
                        self.stride.next(backends);
                    }
                }
                None => {
                    let places = backends.available_ids().len() as u64;
                    self.stride.jump(below(rng, places * FULL));
                }
            }
        }
        self.stride.next(backends)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        let weights = backends.available().map(|b| f64::from(b.weight));
        self.stride.set_weights(weights);
    }
}

//! The least (in_flight + offset) / weight.
//!
//! With offset 1 this is the shortest expected delay: it counts the request itself, so an idle pool
//! starts at the heaviest. Offset 0 with smooth ties is nginx's `least_conn`. Cost O(number of
//! distinct weights), or O(log n) if those are more than 64; smooth ties add O(log n) (O(tied) beyond 64
//! weights), ties by position O(tied); up to 16 backends are looked through. Not
//! when a backend may fail fast (use ejection). Source: Kong and HAProxy (the +1 form), nginx.

use super::least_in_flight::LeastInFlight;
use crate::choose::Ties;
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "offset",
            kind: Kind::Decimal { min: 0.0, max: 1.0 },
            or: &[],
            default: "1",
            summary: "share of the request itself that counts as load",
        },
        Parameter {
            name: "ties",
            kind: Kind::Word(Ties::WORDS),
            or: &[],
            default: "random",
            summary: "who of the equally loaded: by weight in turn, by draw, or the first",
        },
    ],
    reads: &[Read::InFlight],
    randomized: |spec| spec.is("ties", "random"),
    honors_weights: HonorsWeights::Yes,
    known_flaws: &["T13"],
    ..Entry::new(
        "weighted-least-request",
        Group::InFlight,
        "the fewest requests in flight for its weight, this one counted",
        |spec, context| {
            let offset = spec.decimal("offset").unwrap_or(1.0);
            Box::new(LeastInFlight::weighted(offset, Ties::of(spec), context))
        },
    )
};

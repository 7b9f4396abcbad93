//! The backend with the fewest requests in flight.
//!
//! Cost O(1) with ties random; with smooth ties O(distinct weights + log n), or O(tied) if those are more
//! than 64; by position O(tied). Up to 16 backends are looked through. Not when a backend may fail fast:
//! errors that come at once keep it empty and attract everything; use ejection. Source: Envoy's full scan, Caddy, Dubbo's least active.

use super::least_in_flight::LeastInFlight;
use crate::choose::Ties;
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    aliases: &["min-concurrency", "least-connections"],
    parameters: &[Parameter {
        name: "ties",
        kind: Kind::Word(Ties::WORDS),
        or: &[],
        default: "smooth",
        summary: "who of the equally loaded: by weight in turn, by draw, or the first",
    }],
    reads: &[Read::InFlight],
    randomized: |spec| spec.is("ties", "random"),
    honors_weights: HonorsWeights::Ties,
    known_flaws: &["T13"],
    ..Entry::new(
        "least-request",
        Group::InFlight,
        "the fewest requests in flight",
        |spec, context| Box::new(LeastInFlight::unweighted(Ties::of(spec), context)),
    )
};

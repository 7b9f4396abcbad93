//! `peak-ewma` in which a failure counts as a very slow response.
//!
//! So a backend that fails fast does not look fast. A retry hint of a 429 or 503 is heeded. The
//! penalty fades like any sample. Source: linkerd2-proxy's load biaser (2026).

use super::peak_ewma::{CHOICES, DECAY, DEFAULT_RTT, PeakEwma, Penalty};
use crate::registry::{Entry, Group, Kind, Parameter, Read};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        DECAY,
        DEFAULT_RTT,
        CHOICES,
        Parameter {
            name: "penalty",
            kind: Kind::Duration {
                min_ns: 1_000_000,
                max_ns: 600_000_000_000,
            },
            or: &[],
            default: "5s",
            summary: "latency a failure is recorded as",
        },
        Parameter {
            name: "max-hint",
            kind: Kind::Duration {
                min_ns: 0,
                max_ns: 3_600_000_000_000,
            },
            or: &[],
            default: "5min",
            summary: "longest retry hint that is heeded",
        },
    ],
    reads: &[Read::InFlight, Read::Latency, Read::Status],
    randomized: |_| true,
    ..Entry::new(
        "penalty-peak-ewma",
        Group::Latency,
        "peak-ewma in which a failure counts as a very slow response",
        |spec, context| {
            let penalty = Penalty {
                least_ns: spec.duration_ns("penalty"),
                max_hint_ns: spec.duration_ns("max-hint").unwrap_or(0),
            };
            Box::new(PeakEwma::new(spec, penalty, context))
        },
    )
};

//! `plb-live` with the counts that come with every response, polls only where none came lately.
//!
//! Equal to `plb-live` with one balancer; with several it sees what the others send much sooner. Cost
//! O(n) look-ups. Source: ours, after the outlook of Eng. Proc. 2026, 122(1), 26.

use super::latency_model::LIVE;
use super::plb_live::{Live, PARAMETERS};
use crate::registry::{Entry, Group, Read};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: PARAMETERS,
    reads: &[Read::Piggyback, Read::Poll, Read::InFlight, Read::Model],
    randomized: |_| true,
    model: Some(LIVE),
    known_flaws: &["T13"],
    ..Entry::new(
        "plb-piggyback",
        Group::Predictive,
        "the least predicted latency with the counts that responses carry",
        |spec, context| Box::new(Live::new(spec, context, true)),
    )
};

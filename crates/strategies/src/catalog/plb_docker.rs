//! The least latency that a trained model predicts from the container engine's CPU and memory
//! figures.
//!
//! The second model of the paper, which read them every 500 ms; an engine's stream gives about one
//! sample a second. Herds like `plb-paper`, with older data, and does as it does where there are none.
//! Cost O(n) look-ups. Source: Eng. Proc. 2026, 122(1), 26.

use super::latency_model::{DOCKER, MAX_AGE, MODEL, Seen};
use super::plb_paper::LeastPredicted;
use crate::registry::{Entry, Group, Read};
use schema::report::Source;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[MODEL, MAX_AGE],
    reads: &[Read::Docker, Read::InFlight, Read::Model],
    model: Some(DOCKER),
    known_flaws: &["T13", "T18"],
    ..Entry::new(
        "plb-docker",
        Group::Predictive,
        "the least predicted latency from the engine's CPU and memory figures",
        |spec, context| {
            let seen = Seen::new(spec, context, &DOCKER, Source::Docker);
            Box::new(LeastPredicted { seen })
        },
    )
};

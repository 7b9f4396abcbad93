//! The least latency that a trained model predicts from the container engine's CPU and memory
//! figures.
//!
//! The second model of the paper, which read them every 500 ms; an engine's stream gives about one
//! sample a second. Herds like `plb-paper`, with older data. Cost O(n) look-ups. Source: Eng. Proc.
//! 2026, 122(1), 26.

use super::latency_model::{Asked, DOCKER, MODEL, Seen};
use super::plb_paper::LeastPredicted;
use crate::registry::{Entry, Group, Read};
use schema::report::{Report, Source};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[MODEL],
    reads: &[Read::Docker, Read::Model],
    model: Some(DOCKER),
    known_flaws: &["T13", "T18"],
    ..Entry::new(
        "plb-docker",
        Group::Predictive,
        "the least predicted latency from the engine's CPU and memory figures",
        |spec, context| {
            Box::new(LeastPredicted {
                asked: Asked::new(spec, context, &DOCKER),
                seen: Seen::default(),
                source: Source::Docker,
                inputs: cpu_and_memory,
            })
        },
    )
};

fn cpu_and_memory(report: &Report) -> (f64, f64) {
    (
        report.cpu_percent.unwrap_or(0.0),
        report.memory_used_mib.unwrap_or(0.0),
    )
}

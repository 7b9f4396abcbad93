//! Troubles seen in public trackers, each a test named after it.
//!
//! An entry whose `known_flaws` names the case must fail it as described here: that is what the flag
//! says, and a flag that no longer holds is as wrong as a missing one.

mod choices;
mod early;
mod failing;
mod guarded;
mod rotations;
mod warming;

use crate::registry::{ENTRIES, Entry, Group};

/// Weighted rotations without draws; all but the first are smooth.
const ROTATIONS: &[&str] = &[
    "weighted-round-robin",
    "smooth-weighted-round-robin",
    "edf-wrr",
    "static-stride",
];

fn is_flagged(entry: &Entry, case: &str) -> bool {
    entry.known_flaws.contains(&case)
}

/// Names of the entries of a group.
fn of_group(group: Group) -> impl Iterator<Item = &'static str> {
    ENTRIES
        .iter()
        .filter(move |e| e.group == group)
        .map(|e| e.name)
}

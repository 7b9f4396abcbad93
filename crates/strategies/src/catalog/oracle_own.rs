//! The least time for the request itself, knowing the true need of every own job.
//!
//! Selfish: where idle speeds differ it loses to `weighted-least-request`, which is the point of
//! showing it. Cost O(in_flight) per backend. Never in production: it reads what no balancer knows.

use super::oracle;
use crate::registry::Entry;

/// Registry entry.
pub const ENTRY: Entry = oracle::entry(
    "oracle-own",
    "the least time for the request itself, with true needs",
    false,
);

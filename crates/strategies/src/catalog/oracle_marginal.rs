//! The least added delay for all, knowing the true need of every own job.
//!
//! A strong reference, not a bound: it ignores future arrivals, and `look-ahead=0.45` beats it where
//! idle speeds differ. Cost O(in_flight) per backend. Never in production: it reads what no balancer
//! knows.

use super::oracle;
use crate::registry::Entry;

/// Registry entry.
pub const ENTRY: Entry = oracle::entry(
    "oracle-marginal",
    "the least added delay for all, with true needs",
    true,
);

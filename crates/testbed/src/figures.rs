//! Figures from rows: runs, their stability, comparisons between strategies. Pure: rows in, numbers
//! out. The analysis package computes the same figures independently for the report.

pub(crate) mod comparison;
pub(crate) mod failures;
pub(crate) mod intervals;
pub(crate) mod run;
pub(crate) mod stability;

#[cfg(test)]
mod tests;

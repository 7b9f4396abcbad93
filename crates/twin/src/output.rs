//! What a stream of observations says: means and quantiles with intervals, where the warm-up ends,
//! whether the system kept up, whether one strategy is faster than another.
//!
//! Everything takes one observation at a time, in bounded memory and without allocating: an engine of
//! ten million requests a second calls it for each of them.
//!
//! - [`Batches`]: mean and quantiles of a correlated stream, with intervals from batches.
//! - [`WarmUp`]: how many observations to drop at the beginning (MSER-5).
//! - [`Histogram`]: counts in buckets of at most 0.8 %; merging adds them.
//! - [`Backlog`], [`Verdict`]: did the number in the system grow, was a worker sent more than it can do.
//! - [`Paired`]: differences between two strategies that saw the same requests, seed by seed.
//! - [`precision`]: how long to run.

mod backlog;
mod batches;
mod histogram;
mod paired;
pub mod precision;
mod verdict;
mod warm_up;

pub use backlog::{Backlog, Growth};
pub use batches::{Batches, Estimate};
pub use evidence::{Interval, student};
pub use histogram::Histogram;
pub use paired::Paired;
pub use verdict::Verdict;
pub use warm_up::WarmUp;

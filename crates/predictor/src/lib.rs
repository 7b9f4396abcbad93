//! What will this request cost on that container? A trained latency model as a table.
//!
//! A tree ensemble is constant between the borders it splits at. For one API and one container only
//! two of the model's inputs vary, so every prediction it can ever make fits a table
//! ([`LatencyTable`]): a look-up takes nanoseconds, and gives the model's own `f64` to the last bit.
//! [`catboost`] reads the model's JSON export and builds the same table independently of the library
//! that trained it.
//!
//! The crate does no I/O and uses no other crate of the project: the driver reads the file and hands
//! over its bytes. Follows the prediction-based balancer of Eng. Proc. 2026, 122(1), 26.

#![warn(missing_docs)]

pub mod catboost;
pub mod header;
mod index;
mod objects;
pub mod refusal;
pub mod table;

pub use header::{ApiName, Axis, Features, Header, Shape, Statistics};
pub use refusal::Refusal;
pub use table::{Api, Bin, Candidate, Column, Container, LatencyTable, Place, Predictions};

#[cfg(test)]
mod tests;

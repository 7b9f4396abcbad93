//! Pure load-balancing decisions: strategies, the dispatcher that drives them, the registry.
//!
//! One [`Dispatcher`] serves a real balancer (sockets, OS clock) and a simulator (events, virtual
//! clock) alike. The crate does no I/O, reads no clock and draws only from named streams of an
//! explicit seed, so the same calls give the same picks on every platform: a recorded event log
//! fed to a fresh dispatcher repeats every one of them ([`replay`]).
//!
//! Reading order: [`Strategy`] (the trait), [`Dispatcher`] (the only door), [`registry`] (names and
//! parameters), [`catalog`] (one file per strategy), [`choose`] (rules that strategies share).

#![warn(missing_docs)]

pub mod backends;
pub mod catalog;
pub mod choose;
pub mod classes;
pub mod dispatcher;
pub mod ejection;
mod fail_hold;
mod measure;
pub mod registry;
pub mod replay;
pub mod strategy;
pub mod time;
pub mod values;
pub mod work_left;

pub use backends::{Backend, Backends, NewBackend};
pub use dispatcher::{Dispatch, Dispatcher, Options, PollMark, PoolError, UnknownDispatch};
pub use registry::{Context, Spec};
pub use schema::event::Status;
pub use schema::protection::{Mark, Rules};
pub use schema::report::{Report, Source};
pub use strategy::{Rng, Strategy};
pub use time::Time;
pub use values::{Answer, BackendId, Outcome, Request};

// Fixtures are shared with the tests outside, which see the crate by its name.
#[cfg(test)]
extern crate self as strategies;

#[cfg(test)]
mod tests;

//! The twin: a discrete-event simulator that drives the real dispatcher in virtual time.
//!
//! Reading order: [`engine`] (events, requests, balancers), [`station`] (how workers share their
//! cores), [`tally`] (what a run adds up to), [`build`] (from a scenario to a run), [`run`] and
//! [`files`] (the command). It never sleeps and reads no clock.

pub mod build;
pub mod cli;
pub mod compare;
pub mod engine;
pub mod files;
pub mod models;
pub mod optimum;
pub mod output;
mod parallel;
pub mod pivot;
pub mod regret;
pub mod run;
mod settle;
pub mod station;
pub mod sum;
pub mod sweep;
mod table;
pub mod tally;
pub mod validate;

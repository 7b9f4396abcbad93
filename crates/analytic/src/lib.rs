//! Closed forms and exact optima of load balancing: what a simulation must come out at.
//!
//! Every function states its formula and source. Pure arithmetic: no clock, no randomness, no I/O;
//! transcendental functions are the portable ones of `libm`, so results agree on every machine.
//!
//! Units, unless a function says otherwise: S, the mean time of a request alone on one core of speed
//! 1, is the unit of time; rates are requests per S; `load` is offered work over total capacity. A
//! worker is a processor-sharing machine of c cores, PS(c): each of n requests runs at speed
//! min(1, c/n). Arrivals are Poisson; sizes are exponential where the module does not say otherwise.
//!
//! Reading order: [`worker`] (one machine), [`split`] (random splits over several), [`chain`] (the
//! best dynamic strategy and fixed ones, exactly), then the laws of many equal workers: [`rotation`],
//! [`choices`], [`idle`], [`board`]; [`interpretation`] and [`availability`] stand alone.

#![warn(missing_docs)]

pub mod availability;
pub mod board;
pub mod bound;
pub mod chain;
pub mod choices;
pub mod fcfs;
pub mod idle;
pub mod interpretation;
mod root;
pub mod rotation;
pub mod split;
pub mod worker;

pub use bound::OutOfBounds;
pub use worker::Worker;

#[cfg(test)]
mod tests;

/// The README's example compiles and holds.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

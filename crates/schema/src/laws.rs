//! The random laws of a workload: when requests come and how large they are.
//!
//! Pure functions of parameters and a stream of draws ([`crate::rng`]), written once so that the
//! generator, the replay client and the simulation in virtual time draw the same numbers. All
//! transcendental functions are the portable ones of `libm`, and square roots are exact by IEEE 754:
//! the same seed gives the same bits on every machine.
//!
//! | what | where |
//! |---|---|
//! | an arrival process, its bounds and how it is spelled | [`arrivals::Arrivals`] |
//! | its due times, one after the other, without end | [`times::Times`] |
//! | a size law of mean one: draws, spread, distribution function | [`sizes::SizeLaw`] |
//! | one request's size around its API's mean | [`sizes::noisy_mi`] |

pub mod arrivals;
mod gamma;
mod profile;
pub mod sizes;
mod spelling;
pub mod times;

#[cfg(test)]
mod tests;

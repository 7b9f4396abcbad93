//! The twin: a discrete-event simulator that drives the real dispatcher in virtual time.

pub mod station;
pub mod sum;

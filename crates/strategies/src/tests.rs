//! Tests of the crate as a whole: the contract every registry entry keeps, golden sequences and
//! shares, symptoms seen in public trackers, and the README's table.

mod bad_input;
mod contract;
mod ejections;
mod feeds;
mod golden;
mod keys;
pub(crate) mod models;
pub(crate) mod pools;
mod readme;
mod rig;
mod shares;
mod structures;
mod symptoms;
mod world;
mod wrong_use;

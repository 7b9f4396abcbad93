//! What the requests at a backend still need, and what one more would cost.
//!
//! The pieces that `wl-mc` and the oracles combine: the jobs a balancer placed or was told of and how much of
//! each is done ([`jobs`]), what a request of a class needs ([`demand`]), how fast a backend runs
//! ([`speed`]), what of a worker's words still holds ([`told`]), and the price of a placement
//! ([`cost`]), which the offline regret uses as well.

pub(crate) mod backlog;
pub(crate) mod company;
pub mod cost;
pub(crate) mod demand;
pub(crate) mod jobs;
pub(crate) mod left;
pub(crate) mod load;
pub(crate) mod placing;
pub(crate) mod possible;
pub(crate) mod price;
pub(crate) mod recent;
pub(crate) mod speed;
pub(crate) mod told;
pub(crate) mod worlds;

pub use cost::{Cost, Queue, Sharing};
pub use price::Price;

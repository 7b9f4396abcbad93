//! The strategies, one file each. A new one is a file here, a line below and a line in the list of
//! [`crate::registry`].

pub mod least_request;
pub mod random;
pub mod round_robin;
pub mod smooth_weighted_round_robin;
pub mod start;
pub mod weighted_least_request;
pub mod weighted_random;
pub mod weighted_round_robin;

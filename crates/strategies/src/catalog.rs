//! The strategies, one file each. A new one is a file here, a line below and a line in the list of
//! [`crate::registry`].

pub mod bounded_load;
pub mod consistent_hash;
pub mod d_choices;
pub mod edf_wrr;
pub mod jiq;
pub mod least_loaded_wrr;
pub mod least_request;
pub mod maglev;
pub mod one_plus_beta;
pub mod p2c;
pub mod random;
pub mod rendezvous;
pub mod request_hash;
pub mod round_robin;
pub mod smooth_weighted_round_robin;
pub mod static_stride;
pub mod weighted_least_request;
pub mod weighted_p2c;
pub mod weighted_random;
pub mod weighted_round_robin;

// State and parameters that several of them share.
mod deadlines;
mod key;
mod ring;
mod start;
mod stride;

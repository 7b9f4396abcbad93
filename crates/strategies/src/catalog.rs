//! The strategies, one file each. A new one is a file here, a line below and a line in the list of
//! [`crate::registry`].

pub mod aggressive_li;
pub mod basic_li;
pub mod bounded_load;
pub mod c3;
pub mod consistent_hash;
pub mod d_choices;
pub mod edf_wrr;
pub mod jiq;
pub mod least_loaded_wrr;
pub mod least_request;
pub mod least_time;
pub mod least_time_ttfb;
pub mod maglev;
pub mod min_response_time;
pub mod one_plus_beta;
pub mod oracle_marginal;
pub mod oracle_own;
pub mod orca_wrr;
pub mod p2c;
pub mod peak_ewma;
pub mod penalty_peak_ewma;
pub mod plb_docker;
pub mod plb_live;
pub mod plb_p2c;
pub mod plb_paper;
pub mod plb_piggyback;
pub mod plb_softmax;
pub mod polled_least_request;
pub mod polled_own_sends;
pub mod polled_p2c;
pub mod prequal;
pub mod random;
pub mod rendezvous;
pub mod request_hash;
pub mod round_robin;
pub mod shortest_response;
pub mod smooth_weighted_round_robin;
pub mod static_stride;
pub mod weighted_least_request;
pub mod weighted_p2c;
pub mod weighted_random;
pub mod weighted_round_robin;
pub mod wl_mc;

// State and parameters that several of them share.
mod deadlines;
mod key;
mod latency_model;
mod least_in_flight;
mod least_of;
mod least_sampled;
mod load_interpretation;
mod oracle;
mod ring;
mod start;
mod stride;

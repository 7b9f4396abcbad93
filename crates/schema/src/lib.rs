//! Plain data that crosses a process boundary, and the rules for reading it.
//!
//! Every file and header that two programs of the testbed exchange is defined here once: the
//! workload and its schedule, the rows of a replay, a worker's statistics, the balancer's decision
//! record and event log, the manifest of a result folder. The crate does no I/O, reads no clock and
//! holds no state; random draws come from named streams of an explicit seed ([`rng`]).

pub mod ask_first;
pub mod decision;
pub mod duration;
pub mod event;
pub mod fault;
pub mod headers;
pub mod json;
pub mod lateness;
pub mod laws;
pub mod load_report;
pub mod manifest;
pub mod objects;
pub mod origin;
pub mod problem;
pub mod protection;
pub mod quantile;
pub mod report;
pub mod rng;
pub mod row;
pub mod scenario;
pub mod schedule;
pub mod stats;
pub mod sweep;
pub mod weights;
pub mod work_left;
pub mod workload;

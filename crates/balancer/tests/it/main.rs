//! The balancer as a process between raw sockets: both sides are captured and compared.

mod admin;
mod answers;
mod ask_first;
mod bodies;
mod ejection;
mod framing;
mod hostile;
mod leaks;
mod log;
#[path = "../../../console/tests/support/output.rs"]
mod output;
mod replay;
mod start;
mod support;
mod switching;

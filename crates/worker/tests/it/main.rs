//! The worker as its users see it: started as a process, asked over sockets, stopped by signals.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod burn;
mod hostile;
#[path = "../../../console/tests/support/output.rs"]
mod output;
mod process;
mod serving;
mod stopping;

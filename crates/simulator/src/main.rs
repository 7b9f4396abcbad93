//! Replays a workload over HTTP, open loop, and records one CSV row per request.
//!
//! Requests leave at their due times whatever happened to earlier ones, from a thread that does
//! nothing else; latency counts from the due time. Every scheduled request becomes a row, also the
//! one that failed or could not be sent. The client knows no strategy.

mod cli;
mod clock;
mod dispatch;
mod exchange;
mod link;
mod outcome;
mod pool;
mod progress;
mod recorder;
mod replay;
mod requests;
mod signals;
mod slots;
mod tally;
mod target;

use std::process::ExitCode;

use schema::problem::{Problem, Problems};

fn main() -> ExitCode {
    console::start_log("warn");
    match replay::run(&console::arguments::<cli::Cli>()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            console::tell!("error: {error:#}");
            let bad_input = error.is::<Problem>() || error.is::<Problems>();
            ExitCode::from(if bad_input { 2 } else { 1 })
        }
    }
}

//! Makes workloads: seeded JSON files that every program of the testbed replays or models alike.
//!
//! `generate` draws APIs and sizes and writes the file, `import` makes one from a trace, `expand`
//! prints the schedule a file stands for. Same arguments, same bytes, on every machine: draws come from named streams of one seed
//! and use portable functions only.

mod apis;
mod capacity;
mod cli;
mod expand;
mod generate;
mod import;
mod output;
mod sizes;

use std::process::ExitCode;

use schema::problem::{Problem, Problems};

fn main() -> ExitCode {
    let result = match console::arguments::<cli::Cli>().command {
        cli::Command::Generate(arguments) => generate::run(&arguments),
        cli::Command::Expand(arguments) => expand::run(&arguments),
        cli::Command::Import(arguments) => import::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::tell!("error: {error:#}");
            let bad_input = error.is::<Problem>() || error.is::<Problems>();
            ExitCode::from(if bad_input { 2 } else { 1 })
        }
    }
}

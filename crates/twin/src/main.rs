//! The twin's command line.

use schema::problem::{Problem, Problems};
use std::process::ExitCode;
use twin::cli::{Cli, Command};

fn main() -> ExitCode {
    let result = match console::arguments::<Cli>().command {
        Command::Run(arguments) => twin::run::run(&arguments),
        Command::Compare(arguments) => twin::compare::run(&arguments),
        Command::Sweep(arguments) => twin::sweep::run(&arguments),
        Command::Table(arguments) => twin::pivot::run(&arguments),
        Command::Validate(arguments) => twin::validate::run(&arguments),
        Command::Optimum(arguments) => twin::optimum::run(&arguments),
        Command::Regret(arguments) => twin::regret::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::tell!("error: {error:#}");
            let bad_input = error.is::<Problem>()
                || error.is::<Problems>()
                || error.is::<strategies::PoolError>()
                || matches!(error.downcast_ref(), Some(twin::engine::RunError::Pool(_)));
            ExitCode::from(if bad_input { 2 } else { 1 })
        }
    }
}

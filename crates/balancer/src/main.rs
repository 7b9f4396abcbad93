//! The balancer: a streaming reverse proxy whose every choice is made by one dispatcher.

mod admin;
mod ask_first;
mod cli;
mod clock;
mod core;
mod counts;
mod event_log;
mod models;
mod polls;
mod proxy;
mod questions;
mod registry;
mod replay;
mod serve;
mod settings;
mod stand_ins;

use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = console::arguments::<Cli>();
    let done = match cli.command {
        Some(Command::Strategies {
            check,
            models,
            json,
        }) => registry::strategies(&check, &models, json),
        Some(Command::Replay {
            events,
            models,
            json,
        }) => replay::replay(&events, &models, json),
        Some(Command::Healthcheck { url }) => serve::healthcheck(&url),
        None => serve::serve(&cli.serve),
    };
    match done {
        Ok(code) => code,
        Err(e) => {
            console::tell!("error: {e:#}");
            ExitCode::from(1)
        }
    }
}

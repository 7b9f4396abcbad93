//! `worker`: a c-core machine made of real instructions, behind HTTP.
//!
//! The way of a request: [`listener`] takes the connection, [`serve`] tells pages from work, [`work`]
//! reads the task size and hands it to an [`engine`], whose threads keep a pure [`machine`] in time
//! and burn the instructions ([`burn`]). [`ledger`] counts, [`app`] makes `/stats` of it.

mod admin;
mod app;
mod burn;
mod calibrate;
mod cli;
mod clock;
mod config;
mod engine;
mod healthcheck;
mod host;

mod ledger;
mod listener;
mod machine;
mod metrics;
mod model;
mod request_log;
mod selftest;
mod serve;
mod work;

use cli::{Cli, Command};
use clock::Clock;
use schema::problem::{Problem, Problems};
use std::process::ExitCode;

/// Exit codes besides 0.
const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
const THRESHOLD: u8 = 3;

fn main() -> ExitCode {
    // Best effort, here and wherever a slice is asked for: a refusal costs precision only.
    scheduling::sharpen_timers().ok();
    let cli = console::arguments::<Cli>();
    console::start_log("info");
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            console::tell!("error: {error:#}");
            ExitCode::from(if error.is::<Problem>() || error.is::<Problems>() {
                BAD_INPUT
            } else {
                FAILED
            })
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<u8> {
    match cli.command {
        None => serve::run(&cli.serve)?,
        Some(Command::Burn { mi }) => burn_once(mi)?,
        Some(Command::Calibrate) => {
            console::say!("{}", serde_json::to_string(&calibrate::calibrate())?)?;
        }
        Some(Command::Healthcheck { url, timeout }) => healthcheck::run(&url, timeout)?,
        Some(Command::Selftest(args)) => {
            return Ok(if selftest::run(&args)? { 0 } else { THRESHOLD });
        }
    }
    Ok(0)
}

fn burn_once(mi: f64) -> anyhow::Result<()> {
    if !(0.001..=1e6).contains(&mi) {
        let problem = Problem::new("--mi", mi.to_string(), "out of bounds");
        return Err(Problems::from(problem.allowed("0.001 to 1000000")).into());
    }
    let clock = Clock::start();
    burn::burn(mi);
    let wall_ms = clock.now_ns() * 1e-6;
    let mips = mi / (wall_ms * 1e-3);
    console::say!(
        "{}",
        serde_json::json!({"mi": mi, "wall_ms": wall_ms, "mips": mips})
    )?;
    Ok(())
}

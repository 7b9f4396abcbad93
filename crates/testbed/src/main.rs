//! The runner: brings the testbed up as processes or containers, replays a workload against every
//! strategy in interleaved blocks, keeps rows, manifest and summary in a result folder.
//!
//! It drives the other programs as programs; strategies and workers are theirs. Figures are
//! computed from rows (`figures`), decisions are made before anything starts (`plan`).

mod agreement;
mod bed;
mod bench;
mod cli;
mod compare;
mod compare_twin;
mod control;
mod doctor;
mod figures;
mod folder;
mod host;
mod images;
mod janitor;
mod leash;
mod models;
mod plan;
mod programs;
mod report;
mod signals;
mod summary;
mod train;
mod up;

use std::process::ExitCode;

use schema::problem::{Problem, Problems};

use cli::{Cli, Command};

fn main() -> ExitCode {
    console::start_log("warn");
    match run(console::arguments::<Cli>().command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            console::tell!("error: {error:#}");
            let bad_input = error
                .chain()
                .any(|e| e.is::<Problem>() || e.is::<Problems>());
            ExitCode::from(if bad_input { 2 } else { 1 })
        }
    }
}

fn run(command: Command) -> anyhow::Result<u8> {
    // One thread: children are tied to the life of the thread that starts them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command {
            Command::Bench(arguments) => bench::run(&arguments).await,
            Command::Smoke(arguments) => bench::run(&arguments.bench()).await,
            Command::Up(arguments) => up::run(&arguments).await,
            Command::Down => up::down().await.map(|()| 0),
            Command::Doctor { json } => doctor::run(json).await,
            Command::Report { results } => report::run(results.as_deref()),
            Command::Compare { a, b, json } => compare::run(&a, &b, json).map(|()| 0),
            Command::Train(arguments) => train::run(&arguments),
            Command::CompareTwin(arguments) => compare_twin::run(&arguments).await,
            Command::Images => images::run().await.map(|()| 0),
            Command::Leash(arguments) => leash::run(&arguments).map(|()| 0),
            Command::Janitor(arguments) => janitor::run(&arguments).await.map(|()| 0),
        }
    })
}

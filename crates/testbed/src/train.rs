//! `train`: rows from the simulation or from a result, then the training package.
//!
//! Two models come out. *paper*: the predictive balancer of the paper, trained on what it polled
//! under round robin. *live*: the same learner on live counts under weighted random at mixed loads,
//! which is what the strategies with live counts need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use schema::problem::{Problem, Problems};

use crate::cli::TrainArgs;
use crate::programs::Programs;
use crate::report::{Python, python};

const PACKAGE: &str = "plumbline_analysis.training";
/// Rows recorded under each of the paper's two strategies; those of round robin train.
const ROWS: u32 = 20_000;
/// Leading requests of a recording that are left out.
const WARMUP: u32 = 1_000;
/// Loads of the mixed recording, an equal part of the rows each.
const LOADS: [f64; 4] = [0.3, 0.5, 0.7, 0.85];

/// Rows of one kind and the load they were recorded at, where that is not written with them.
struct Recording {
    rows: PathBuf,
    load: Option<f64>,
}

/// Trains and keeps the models; prints a line on each.
pub(crate) fn run(arguments: &TrainArgs) -> anyhow::Result<u8> {
    let python = python()?;
    can_train(&python)?;
    let work = arguments.out.join("training");
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let recordings = match &arguments.from {
        Some(result) => {
            if !result.join("rows.csv").is_file() {
                let problem = Problem::new("--from", result.display().to_string(), "no rows.csv")
                    .next("name a result folder of `testbed bench`");
                return Err(Problems::from(problem).into());
            }
            let from = Recording {
                rows: result.clone(),
                load: None,
            };
            vec![("paper", "round-robin", "polled", vec![from], ROWS)]
        }
        None => simulated(arguments, &work)?,
    };
    for (name, strategy, statistics, recordings, limit) in recordings {
        let folder = work.join(name);
        let mut command = package(&python);
        command
            .arg("train")
            .arg("--force")
            .arg("--out")
            .arg(&folder);
        command.args(["--strategy", strategy, "--statistics", statistics]);
        command.args(["--limit", &limit.to_string()]);
        for recording in recordings {
            command.arg("--rows").arg(&recording.rows);
            if let Some(load) = recording.load {
                command.args(["--load", &load.to_string()]);
            }
        }
        if arguments.all_trees {
            command.arg("--all-trees");
        }
        console::tell!("training {name} on {strategy} rows ({statistics} counts)");
        complete(command, "the training")?;
        for (from, to) in [
            ("model.plbtab", format!("{name}.plbtab")),
            ("model-card.md", format!("{name}.md")),
        ] {
            let to = arguments.out.join(to);
            fs::copy(folder.join(from), &to)
                .with_context(|| format!("cannot write {}", to.display()))?;
        }
        console::say!("{}", arguments.out.join(format!("{name}.plbtab")).display())?;
    }
    Ok(0)
}

type Lesson = (
    &'static str,
    &'static str,
    &'static str,
    Vec<Recording>,
    u32,
);

/// Has the simulation record the paper's rows, and those at mixed loads.
fn simulated(arguments: &TrainArgs, work: &Path) -> anyhow::Result<Vec<Lesson>> {
    let twin = Programs::find()?.path("twin");
    let record = |name: &str, strategy: &str, requests: u32, load: Option<f64>| {
        let rows = work.join(format!("{name}.csv"));
        let mut command = Command::new(&twin);
        command.args(["run", "--strategy", strategy, "--cores", "4,3,2"]);
        command.args(["--poll", "100ms", "--network-delay", "0.25ms"]);
        command.arg("--workload").arg(&arguments.workload);
        command.args(["--warmup", &WARMUP.to_string()]);
        command.args(["--requests", &(requests + WARMUP).to_string()]);
        command.args(["--seed", &arguments.seed.to_string()]);
        match load {
            Some(load) => command.args(["--arrivals", "poisson", "--load", &load.to_string()]),
            None => command.args(["--arrivals", "workload"]),
        };
        command.arg("--json").arg("--out").arg(&rows);
        let output = command
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", twin.display()))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!("twin: {}: {}", output.status, complaint.trim());
        }
        let said: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("`twin run --json` printed no JSON")?;
        let load = load.or_else(|| said["load"].as_f64());
        anyhow::Ok(Recording { rows, load })
    };
    let paper = record("round-robin", "round-robin", ROWS, None)?;
    // The paper collected as many again under weighted round robin, and trained on the former only.
    record(
        "weighted-round-robin",
        "smooth-weighted-round-robin",
        ROWS,
        None,
    )?;
    let part = ROWS / LOADS.len() as u32;
    let mixed = LOADS
        .iter()
        .map(|load| {
            record(
                &format!("mixed-{load}"),
                "weighted-random",
                part,
                Some(*load),
            )
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(vec![
        ("paper", "round-robin", "polled", vec![paper], ROWS),
        ("live", "weighted-random", "live", mixed, part),
    ])
}

fn package(python: &Python) -> Command {
    let mut command = python.command();
    command.args(["-m", PACKAGE]);
    command
}

/// Says how to get what training needs, before anything is recorded.
fn can_train(python: &Python) -> anyhow::Result<()> {
    let mut command = python.command();
    command.args(["-c", "import catboost"]);
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        bail!(
            "{} cannot import catboost; `make training-env` installs it",
            python.program.display()
        );
    }
    Ok(())
}

/// Runs a program whose output goes to standard error; 2 of its exit codes are the user's mistakes.
fn complete(mut command: Command, what: &str) -> anyhow::Result<()> {
    let status = command
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .with_context(|| format!("cannot start {what}"))?;
    if !status.success() {
        bail!("{what} failed: {status}");
    }
    Ok(())
}

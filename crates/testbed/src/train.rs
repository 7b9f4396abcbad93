//! `train`: rows from the simulation or from a result, then the training package.
//!
//! Three models come out. *paper*: the predictive balancer of the paper, trained on what it polled
//! under round robin (its Table 1). *docker*: its second one, on the same rows, from the CPU and memory
//! of the containers (Table 2). *live*: the first learner on live counts under weighted random at mixed
//! loads, which is what the strategies with live counts need. Simulated rows come with others of another
//! seed that tell what each candidate of a pick would have taken: the card says how often the model has
//! two of them in the right order.

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
/// Requests whose candidates judge the order of a model's predictions.
const JUDGED: u32 = 5_000;

/// Rows of one kind and the load they were recorded at, where that is not written with them.
#[derive(Clone)]
struct Recording {
    rows: PathBuf,
    load: Option<f64>,
}

/// What one model learns from.
struct Lesson {
    name: &'static str,
    strategy: &'static str,
    statistics: &'static str,
    recordings: Vec<Recording>,
    /// Rows of each recording that count.
    limit: u32,
    /// Files of candidates that its order is judged by.
    candidates: Vec<PathBuf>,
}

impl Lesson {
    /// On the rows of the paper.
    fn of_paper(
        name: &'static str,
        statistics: &'static str,
        recording: Recording,
        candidates: Vec<PathBuf>,
    ) -> Self {
        Self {
            name,
            strategy: "round-robin",
            statistics,
            recordings: vec![recording],
            limit: ROWS,
            candidates,
        }
    }
}

/// Trains and keeps the models; prints a line on each.
pub(crate) fn run(arguments: &TrainArgs) -> anyhow::Result<u8> {
    let python = python()?;
    can_train(&python)?;
    let work = arguments.out.join("training");
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let lessons = match &arguments.from {
        Some(result) => recorded(result)?,
        None => simulated(arguments, &work)?,
    };
    for lesson in lessons {
        let folder = work.join(lesson.name);
        let mut command = package(&python);
        command
            .arg("train")
            .arg("--force")
            .arg("--out")
            .arg(&folder);
        command.args(["--strategy", lesson.strategy]);
        command.args(["--statistics", lesson.statistics]);
        command.args(["--limit", &lesson.limit.to_string()]);
        for recording in lesson.recordings {
            command.arg("--rows").arg(&recording.rows);
            if let Some(load) = recording.load {
                command.args(["--load", &load.to_string()]);
            }
        }
        for candidates in lesson.candidates {
            command.arg("--candidates").arg(candidates);
        }
        if arguments.all_trees {
            command.arg("--all-trees");
        }
        console::tell!(
            "training {} on {} rows ({} statistics)",
            lesson.name,
            lesson.strategy,
            lesson.statistics
        );
        complete(command, "the training")?;
        for (from, ending) in [("model.plbtab", "plbtab"), ("model-card.md", "md")] {
            let to = arguments.out.join(format!("{}.{ending}", lesson.name));
            fs::copy(folder.join(from), &to)
                .with_context(|| format!("cannot write {}", to.display()))?;
        }
        let table = arguments.out.join(format!("{}.plbtab", lesson.name));
        console::say!("{}", table.display())?;
    }
    Ok(0)
}

/// The round-robin rows of a result folder: the paper's two models, the second one if the rows tell of
/// the containers.
fn recorded(result: &Path) -> anyhow::Result<Vec<Lesson>> {
    let rows = result.join("rows.csv");
    if !rows.is_file() {
        let problem = Problem::new("--from", result.display().to_string(), "no rows.csv")
            .next("name a result folder of `testbed bench`");
        return Err(Problems::from(problem).into());
    }
    let recording = Recording {
        rows: result.to_path_buf(),
        load: None,
    };
    let mut lessons = vec![Lesson::of_paper(
        "paper",
        "polled",
        recording.clone(),
        Vec::new(),
    )];
    if tells_of_containers(&rows)? {
        lessons.push(Lesson::of_paper("docker", "docker", recording, Vec::new()));
    } else {
        console::tell!(
            "no docker model: no row of {} has cpu_percent and memory_mib",
            rows.display()
        );
    }
    Ok(lessons)
}

/// Whether a row has the CPU and the memory of its container.
fn tells_of_containers(rows: &Path) -> anyhow::Result<bool> {
    let cannot = || format!("cannot read {}", rows.display());
    let mut reader = csv::Reader::from_path(rows).with_context(cannot)?;
    let header = reader.headers().with_context(cannot)?;
    let place = |name: &str| header.iter().position(|column| column == name);
    let (Some(cpu), Some(memory)) = (place("cpu_percent"), place("memory_mib")) else {
        return Ok(false);
    };
    for row in reader.records() {
        let row = row.with_context(cannot)?;
        let is_told = |at: usize| row.get(at).is_some_and(|text| !text.is_empty());
        if is_told(cpu) && is_told(memory) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// When the requests of a recording come.
#[derive(Debug, Clone, Copy)]
struct Comes {
    arrivals: &'static str,
    /// Not said: that of the workload.
    load: Option<f64>,
    seed: u64,
}

/// Has the simulation record the paper's rows, and those at mixed loads.
fn simulated(arguments: &TrainArgs, work: &Path) -> anyhow::Result<Vec<Lesson>> {
    let twin = Programs::find()?.path("twin");
    let record = |name: &str, strategy: &str, requests: u32, comes: Comes, flag: &str| {
        let rows = work.join(format!("{name}.csv"));
        let mut command = Command::new(&twin);
        command.args(["run", "--strategy", strategy, "--cores", "4,3,2"]);
        command.args(["--poll", "100ms", "--network-delay", "0.25ms"]);
        command.arg("--workload").arg(&arguments.workload);
        command.args(["--warmup", &WARMUP.to_string()]);
        command.args(["--requests", &(requests + WARMUP).to_string()]);
        command.args(["--seed", &comes.seed.to_string()]);
        command.args(["--arrivals", comes.arrivals]);
        if let Some(load) = comes.load {
            command.args(["--load", &load.to_string()]);
        }
        command.arg("--json").arg(flag).arg(&rows);
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
        let load = comes.load.or_else(|| said["load"].as_f64());
        anyhow::Ok(Recording { rows, load })
    };
    let seed = arguments.seed;
    let (rows, candidates) = ("--out", "--candidates");
    let listed = Comes {
        arrivals: "workload",
        load: None,
        seed,
    };
    let paper = record("round-robin", "round-robin", ROWS, listed, rows)?;
    // The paper collected as many again under weighted round robin, and trained on the former only.
    record(
        "weighted-round-robin",
        "smooth-weighted-round-robin",
        ROWS,
        listed,
        rows,
    )?;
    // Another order of the same requests, at the same even gaps.
    let drawn = Comes {
        arrivals: "constant",
        load: paper.load,
        seed: seed.wrapping_add(1),
    };
    let judge = record(
        "round-robin-judge",
        "round-robin",
        JUDGED,
        drawn,
        candidates,
    )?;
    let judges = vec![judge.rows];
    let parts = LOADS.len() as u32;
    let mut live = Lesson {
        name: "live",
        strategy: "weighted-random",
        statistics: "live",
        recordings: Vec::new(),
        limit: ROWS / parts,
        candidates: Vec::new(),
    };
    for load in LOADS {
        let name = format!("mixed-{load}");
        let comes = Comes {
            arrivals: "poisson",
            load: Some(load),
            seed,
        };
        let mixed = record(&name, live.strategy, live.limit, comes, rows)?;
        live.recordings.push(mixed);
        let name = format!("{name}-judge");
        let comes = Comes {
            seed: seed.wrapping_add(1),
            ..comes
        };
        let judge = record(&name, live.strategy, JUDGED / parts, comes, candidates)?;
        live.candidates.push(judge.rows);
    }
    Ok(vec![
        Lesson::of_paper("paper", "polled", paper.clone(), judges.clone()),
        Lesson::of_paper("docker", "docker", paper, judges),
        live,
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

#[cfg(test)]
mod tests {
    use super::recorded;

    #[test]
    fn the_container_figures_are_learned_from_where_rows_have_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let models = |rows: &str| -> Vec<&str> {
            std::fs::write(folder.path().join("rows.csv"), rows).expect("written");
            let lessons = recorded(folder.path()).expect("rows");
            lessons.iter().map(|l| l.statistics).collect()
        };
        let columns = "seq,cpu_percent,memory_mib\n";
        assert_eq!(
            models(&format!("{columns}1,,\n2,80.5,7\n")),
            ["polled", "docker"]
        );
        assert_eq!(
            models(&format!("{columns}1,,\n2,80.5,\n3,,7\n")),
            ["polled"]
        );
        assert_eq!(models(columns), ["polled"]);
        assert_eq!(models("seq\n1\n"), ["polled"]);
        std::fs::remove_file(folder.path().join("rows.csv")).expect("removed");
        let error = recorded(folder.path()).err().expect("refused").to_string();
        assert!(error.contains("no rows.csv"), "{error}");
    }
}

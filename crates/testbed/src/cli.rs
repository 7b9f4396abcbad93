//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use schema::ask_first::AskFirst;
use schema::stats::Discipline;

use crate::bed::CORES;
use crate::bed::select::Kind;
use crate::janitor::JanitorArgs;
use crate::leash::LeashArgs;
use crate::plan::preset::Preset;

const EXAMPLES: &str = "\
Examples:
  testbed bench                                      which of the usual strategies is better here?
  testbed bench --preset smoke --backend process     does everything work? under 20 seconds
  testbed bench --preset paper --blocks 1            a first look at the paper's comparison
  testbed bench --strategies round-robin,least-request --load 0.8 \\
      --fail-if 'least-request.p99_ms > round-robin.p99_ms'
  testbed bench --resume results/20260101T120000Z-quick
  testbed compare-twin results/20260101T120000Z-quick may the twin be believed about this result?
  testbed up                                         balancer on 127.0.0.1:8080, until `testbed down`

Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 a threshold of --fail-if not met or a result
that is not valid, 130 and 143 after SIGINT and SIGTERM.";

/// Runs experiments: preflight, interleaved blocks, rows, summary, report.
#[derive(Debug, Parser)]
#[command(name = "testbed", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare strategies: preflight, blocks, summary, report
    Bench(BenchArgs),
    /// Does everything work? The smoke preset of `bench`, without a report
    Smoke(SmokeArgs),
    /// Start workers and balancer and leave them running
    Up(UpArgs),
    /// Stop what `up` started as containers
    Down,
    /// Say what this machine has and lacks
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make summary and report of a result folder again
    Report {
        /// Result folder, or a rows file of `simulator` [default: the newest below results/]
        results: Option<PathBuf>,
    },
    /// Compare two result folders, strategy by strategy
    Compare {
        /// The earlier or reference folder
        a: PathBuf,
        /// The folder compared with it
        b: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Train the latency models that predictive strategies ask
    Train(TrainArgs),
    /// Give a recorded result's requests to the twin and say how well the two agree
    #[command(after_help = "\
Examples:
  testbed compare-twin results/20260101T120000Z-quick              calibrates on a fresh testbed
  testbed compare-twin results/20260101T120000Z-paper --from-rows  calibrates on the rows themselves
  testbed compare-twin results/20260101T120000Z-paper --blocks 1,2,3 --json \\
      --calibration results/20260101T120000Z-quick/agreement/calibration.json

Each arm's requests go to the twin as they were sent, with the arm's strategy, seed and poll interval.
Gates after the warm-up, twin against real: mean and p50 5 %, p95 10 %, p99 15 %, a worker's share 2
points, Kolmogorov-Smirnov distance 0.08; for round-robin and smooth-weighted-round-robin also
Spearman's rank correlation of single requests at least 0.9, and over six runs or more the standard
deviation of run means within a factor of 2.

Exit codes: 0 done, 1 a gate missed for round-robin or smooth-weighted-round-robin (arm or strategy),
picks that do not replay equal, or failed; 2 bad usage or input.")]
    CompareTwin(CompareTwinArgs),
    /// Build the container image from this build's static programs
    Images,
    #[command(hide = true)]
    Leash(LeashArgs),
    #[command(hide = true)]
    Janitor(JanitorArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct BenchArgs {
    /// How much to do
    #[arg(long, value_enum, default_value_t = Preset::Quick)]
    pub(crate) preset: Preset,
    /// Strategies, the baseline first; a piece key=value belongs to the strategy before it
    /// [default: the preset's]
    #[arg(long, value_name = "A,B,...")]
    pub(crate) strategies: Option<String>,
    /// Latency model for predictive strategies, or a folder that holds NAME.plbtab files itself, not in
    /// folders below it (repeat) [default: models/, if there is one]
    #[arg(long = "model", value_name = "[NAME=]FILE")]
    pub(crate) models: Vec<String>,
    /// Workload file [default: the preset's]
    #[arg(long, value_name = "FILE")]
    pub(crate) workload: Option<PathBuf>,
    /// Cores of the workers a, b and c; fractions are quotas below a core. Weights are the smallest whole
    /// numbers in proportion
    #[arg(long, default_value = "4,3,2", value_name = "A,B,C", value_parser = cores)]
    pub(crate) cores: Cores,
    /// How requests share a worker's cores: ps (processor sharing) or fcfs (first come, first served)
    #[arg(long, default_value_t = Discipline::Ps, value_name = "ps|fcfs")]
    pub(crate) discipline: Discipline,
    /// Workers tell the work left of what they hold, for strategies with `reports=work`
    #[arg(long)]
    pub(crate) tell_work_left: bool,
    /// Before each pick the balancer asks every eligible worker for a report and waits this long at most (1ms
    /// to 1s); nothing for strategies that read neither polls nor probes
    #[arg(long, allow_hyphen_values = true, default_value_t = AskFirst::OFF, value_name = "D|off")]
    pub(crate) ask_first: AskFirst,
    /// Scale the arrivals to this load on the workers' cores
    #[arg(long, value_name = "RHO", value_parser = load)]
    pub(crate) load: Option<f64>,
    /// Where the programs run [default: docker where an engine answers, else process]
    #[arg(long, value_enum)]
    pub(crate) backend: Option<Kind>,
    /// Rounds over all strategies [default: the preset's, more for more strategies]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) blocks: Option<u32>,
    /// Root of block order, schedules and strategies' draws
    #[arg(long, default_value_t = 42, value_name = "N", value_parser = schema::rng::parse_seed)]
    pub(crate) seed: u64,
    /// Result folder [default: results/UTC-PRESET]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with an interrupted bench; everything else comes from its manifest
    #[arg(long, value_name = "DIR", conflicts_with_all = ["strategies", "models", "workload", "load", "blocks", "seed", "preset", "burn_fraction", "mips_per_core", "cores", "discipline", "tell_work_left", "ask_first", "protection"])]
    pub(crate) resume: Option<PathBuf>,
    /// Balancer protection: plain compares strategies alone, guarded adds a limit per attempt,
    /// shedding, one repeat on a connection that was closed, and ejection
    #[arg(long, default_value = "plain", value_parser = ["plain", "guarded"])]
    pub(crate) protection: String,
    /// Exit with 3 when this holds: 'A.mean_ms > 1.05 * B.mean_ms' (repeat)
    #[arg(long, value_name = "EXPR")]
    pub(crate) fail_if: Vec<String>,
    /// Share of the instructions that is really executed: auto or 0.001 to 1
    #[arg(long, default_value = "auto", value_name = "F", value_parser = burn_fraction)]
    pub(crate) burn_fraction: BurnFraction,
    /// Speed a worker's core is held at, millions of instructions per second
    #[arg(long, default_value_t = crate::plan::burn::MIPS_PER_CORE, value_name = "M", value_parser = mips)]
    pub(crate) mips_per_core: f64,
    /// No report.html
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Print the summary as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct TrainArgs {
    /// Result folder with round-robin rows [default: rows from the simulation]
    #[arg(long, value_name = "RESULTS", conflicts_with = "from_twin")]
    pub(crate) from: Option<PathBuf>,
    /// Rows from the simulation (the default): the paper's, and mixed loads for live counts
    #[arg(long)]
    pub(crate) from_twin: bool,
    /// Where models and their cards go
    #[arg(long, default_value = "models", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Workload of the simulated rows
    #[arg(
        long,
        default_value = "workloads/paper.json",
        value_name = "FILE",
        conflicts_with = "from"
    )]
    pub(crate) workload: PathBuf,
    /// Root of the simulation's draws
    #[arg(long, default_value_t = 1, value_name = "N", conflicts_with = "from", value_parser = schema::rng::parse_seed)]
    pub(crate) seed: u64,
    /// Keep every tree instead of stopping early
    #[arg(long)]
    pub(crate) all_trees: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SmokeArgs {
    /// Where the programs run [default: docker where an engine answers, else process]
    #[arg(long, value_enum)]
    pub(crate) backend: Option<Kind>,
    /// Result folder [default: results/UTC-smoke]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Root of all draws
    #[arg(long, default_value_t = 42, value_name = "N", value_parser = schema::rng::parse_seed)]
    pub(crate) seed: u64,
    /// Print the summary as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct UpArgs {
    /// Where the programs run; processes stay in the foreground until Ctrl-C
    #[arg(long, value_enum)]
    pub(crate) backend: Option<Kind>,
    /// Strategy of the balancer
    #[arg(long, default_value = "smooth-weighted-round-robin", value_name = "S")]
    pub(crate) strategy: String,
    /// Balancer protection
    #[arg(long, default_value = "guarded", value_parser = ["plain", "guarded"])]
    pub(crate) protection: String,
    /// Share of the instructions that is really executed: auto or 0.001 to 1
    #[arg(long, default_value = "auto", value_name = "F", value_parser = burn_fraction)]
    pub(crate) burn_fraction: BurnFraction,
    /// Port of the balancer's traffic on 127.0.0.1
    #[arg(long, default_value_t = 8080, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// Port of the balancer's admin listener on 127.0.0.1
    #[arg(long, default_value_t = 8081, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) admin_port: u16,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct CompareTwinArgs {
    /// Result folder of `testbed bench`
    pub(crate) results: PathBuf,
    /// Speed and overhead from this file, written by an earlier comparison on the same machine
    #[arg(long, value_name = "FILE", conflicts_with = "from_rows")]
    pub(crate) calibration: Option<PathBuf>,
    /// Speed and overhead from the recorded requests that had a core to themselves; without this
    /// and --calibration, workers of the same back end are started and measured
    #[arg(long)]
    pub(crate) from_rows: bool,
    /// Only these blocks, such as 1,2,3
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) blocks: Vec<u32>,
    /// Where the twin's rows, the calibration and agreement.json go [default: RESULTS/agreement]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// The twin [default: beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) twin: Option<PathBuf>,
    /// Print JSON instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// `auto` or a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BurnFraction(pub(crate) Option<f64>);

impl SmokeArgs {
    /// The bench a smoke test is.
    pub(crate) fn bench(&self) -> BenchArgs {
        BenchArgs {
            preset: Preset::Smoke,
            strategies: None,
            models: Vec::new(),
            workload: None,
            load: None,
            cores: Cores(CORES),
            discipline: Discipline::Ps,
            tell_work_left: false,
            ask_first: AskFirst::OFF,
            backend: self.backend,
            blocks: None,
            seed: self.seed,
            out: self.out.clone(),
            resume: None,
            protection: "plain".into(),
            fail_if: Vec::new(),
            burn_fraction: BurnFraction(None),
            mips_per_core: 7450.0,
            no_report: true,
            json: self.json,
        }
    }
}

fn burn_fraction(text: &str) -> Result<BurnFraction, String> {
    match text {
        "auto" => Ok(BurnFraction(None)),
        _ => within(text, 0.001, 1.0).map(|f| BurnFraction(Some(f))),
    }
}

/// Cores of the three workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cores(pub(crate) [f64; 3]);

impl Cores {
    pub(crate) fn sum(self) -> f64 {
        self.0.iter().sum()
    }
}

fn cores(text: &str) -> Result<Cores, String> {
    let each: Vec<f64> = text
        .split(',')
        .map(|one| within(one, 0.1, 64.0))
        .collect::<Result<_, _>>()?;
    let three = <[f64; 3]>::try_from(each);
    three
        .map(Cores)
        .map_err(|each| format!("{} numbers (needed: 3, as 4,3,2)", each.len()))
}

fn load(text: &str) -> Result<f64, String> {
    within(text, 0.001, 10.0)
}

fn mips(text: &str) -> Result<f64, String> {
    within(text, 1.0, 1e6)
}

fn within(text: &str, low: f64, high: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(format!("not usable (allowed: {low} to {high})")),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

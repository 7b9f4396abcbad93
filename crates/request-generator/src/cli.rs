//! The command line.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use schema::laws::arrivals;
use schema::workload::{MAX_APIS, Order};

use crate::sizes;

pub(crate) use import::{Format, Import, TimestampUnit};

mod import;

const EXAMPLES: &str = "\
Examples:
  request-generator generate --apis 100 --runs 200 --seed 42 --out load.json
  request-generator generate --apis 20 --runs 50 --seed 1 --arrivals gamma:80:3 --order round
  request-generator expand load.json --out schedule.csv
  request-generator expand load.json | head
  request-generator import --format clf access.log --speed 10 --out load.json";

/// Seeded workloads for the testbed.
#[derive(Debug, Parser)]
#[command(name = "request-generator", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Draw APIs and task sizes and write a workload file
    #[command(after_help = generate_help())]
    Generate(Generate),
    /// Print the schedule of a workload file as CSV
    #[command(after_help = "\
Examples:
  request-generator expand workloads/paper.json --out schedule.csv
  request-generator expand workloads/quick.json | head

Columns: seq, intended_ns (after the run's time 0), api_id, method, url, task_size_mi.")]
    Expand(Expand),
    /// Make a workload from a trace: one request for each of its rows
    #[command(after_help = import::HELP)]
    Import(Import),
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// Number of APIs, each a different method and URL
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_APIS as i64))]
    pub(crate) apis: u32,
    /// Number of different URLs among them; default: nearly as many as APIs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_APIS as i64))]
    pub(crate) urls: Option<u32>,
    /// Calls of each API
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) runs: u32,
    /// Root of every random draw
    #[arg(long, value_name = "N", value_parser = schema::rng::parse_seed)]
    pub(crate) seed: u64,
    /// Arrival process, see below
    #[arg(long, default_value = "constant:10ms", value_name = "LAW")]
    pub(crate) arrivals: String,
    /// Order of the calls: shuffled (all runs in one seeded shuffle), round (each API once, again
    /// and again) or sequential (all runs of one API, then the next)
    #[arg(long, default_value = "shuffled", value_name = "ORDER", value_parser = order)]
    pub(crate) order: Order,
    /// Name of the workload, for people; default: "workload"
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Write here, whole or not at all; default: standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sizes: SizeArguments,
    #[command(flatten)]
    pub(crate) capacity: Capacity,
}

/// How large tasks are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Task sizes")]
pub(crate) struct SizeArguments {
    /// Law of the APIs' task sizes, see below
    #[arg(long, default_value = "lognormal", value_name = "LAW")]
    pub(crate) sizes: String,
    /// Median of the log-normal task size, million instructions; default: 395
    #[arg(long, value_name = "MI")]
    pub(crate) size_median_mi: Option<f64>,
    /// Spread of the log-normal task size: standard deviation of its logarithm; default: 0.25
    #[arg(long, value_name = "S")]
    pub(crate) size_sigma: Option<f64>,
    /// Smallest task size; smaller draws are drawn again; default: 250, of laws with values 1
    #[arg(long, value_name = "MI")]
    pub(crate) size_min_mi: Option<f64>,
    /// Largest task size; larger draws are drawn again; default: 750, of laws with values 100000
    #[arg(long, value_name = "MI")]
    pub(crate) size_max_mi: Option<f64>,
    /// Spread of each request's size around its API's: coefficient of variation of a log-normal
    /// factor of mean one
    #[arg(long, default_value_t = 0.0, value_name = "CV")]
    pub(crate) size_cv: f64,
}

/// What a rate in percent is a share of.
#[derive(Debug, Args)]
#[command(next_help_heading = "Capacity")]
pub(crate) struct Capacity {
    /// Cores of the workers, added up; what 100% of a rate is a share of
    #[arg(
        long,
        default_value = "4,3,2",
        value_name = "C,C,..",
        allow_hyphen_values = true
    )]
    pub(crate) cores: String,
    /// Speed of one core, million instructions a second
    #[arg(long, default_value_t = 7450.0, value_name = "M")]
    pub(crate) mips_per_core: f64,
}

#[derive(Debug, Args)]
pub(crate) struct Expand {
    /// The workload file
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: PathBuf,
    /// Write here, whole or not at all; default: standard output
    #[arg(long, value_name = "CSV")]
    pub(crate) out: Option<PathBuf>,
}

impl SizeArguments {
    /// True if no flag about sizes was given.
    pub(crate) fn is_default(&self) -> bool {
        let numbers = [
            self.size_median_mi,
            self.size_sigma,
            self.size_min_mi,
            self.size_max_mi,
        ];
        self.sizes == "lognormal" && self.size_cv == 0.0 && numbers.iter().all(Option::is_none)
    }
}

fn order(text: &str) -> Result<Order, String> {
    let known = Order::ALL.map(Order::as_str);
    Order::from_str(text).map_err(|what| format!("{what} (allowed: {})", known.join(", ")))
}

fn generate_help() -> String {
    let mut help = String::from("Arrival processes (--arrivals):\n");
    table(&mut help, &arrivals::SPELLINGS);
    help.push_str(
        "  RATE is a number of requests a second (80 or 80rps), or a share of the capacity that\n  \
         --cores and --mips-per-core state: 60% is the rate at which the mean task size keeps them\n  \
         busy 60 % of the time. Durations have a unit (ms, s, min, h).\n\n\
         Laws of task sizes (--sizes), one size for each API:\n",
    );
    table(&mut help, &sizes::SPELLINGS);
    help.push_str(
        "\nExamples:
  request-generator generate --apis 100 --runs 200 --seed 42 --out load.json
  request-generator generate --seed 42 --runs 8 --arrivals poisson:100 > load.json
  request-generator generate --seed 42 --arrivals poisson:60% --cores 4,3,2 --mips-per-core 7450
  request-generator generate --seed 42 --arrivals sine:60%:0.5:60s --sizes exponential:400
  request-generator generate --seed 3 --apis 10 --size-median-mi 1000 --size-sigma 0.8 \\
      --size-min-mi 100 --size-max-mi 5000
  request-generator generate --seed 3 --apis 3 --sizes list:100,400,900 --size-cv 0.2",
    );
    help
}

fn table(help: &mut String, rows: &[(&str, &str)]) {
    let width = rows.iter().map(|(form, _)| form.len()).max().unwrap_or(0);
    for (form, what) in rows {
        let _ = writeln!(help, "  {form:width$}  {what}");
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

//! The command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use schema::workload::{Arrivals, MAX_APIS, MAX_INTERVAL_MS, MAX_RATE_RPS, Order};

use crate::sizes::SizeLaw;

const EXAMPLES: &str = "\
Examples:
  request-generator generate --apis 100 --runs 200 --seed 42 --out load.json
  request-generator generate --apis 20 --runs 50 --seed 1 --arrivals poisson:80 --order round
  request-generator expand load.json --out schedule.csv
  request-generator expand load.json | head";

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
    #[command(after_help = "\
Examples:
  request-generator generate --apis 100 --runs 200 --seed 42 --out load.json
  request-generator generate --apis 100 --runs 8 --seed 42 --arrivals poisson:100 > load.json
  request-generator generate --apis 10 --runs 10 --seed 3 --size-median-mi 1000 \\
      --size-min-mi 100 --size-max-mi 5000 --size-sigma 0.8")]
    Generate(Generate),
    /// Print the schedule of a workload file as CSV
    #[command(after_help = "\
Examples:
  request-generator expand workloads/paper.json --out schedule.csv
  request-generator expand workloads/quick.json | head

Columns: seq, intended_ns (after the run's time 0), api_id, method, url, task_size_mi.")]
    Expand(Expand),
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// Number of APIs, each a different method and URL
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_APIS as i64))]
    pub(crate) apis: u32,
    /// Calls of each API
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) runs: u32,
    /// Root of every random draw
    #[arg(long, value_name = "N")]
    pub(crate) seed: u64,
    /// Arrival process: constant:GAP (such as constant:10ms) or poisson:RATE (requests a second)
    #[arg(long, default_value = "constant:10ms", value_name = "LAW", value_parser = arrivals)]
    pub(crate) arrivals: Arrivals,
    /// Order of the calls: shuffled (all runs in one seeded shuffle), round (each API once, again
    /// and again) or sequential (all runs of one API, then the next)
    #[arg(long, default_value = "shuffled", value_name = "ORDER", value_parser = order)]
    pub(crate) order: Order,
    /// Name of the workload; default: the name of the output file, else "workload"
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Median of the log-normal task size, million instructions
    #[arg(long, default_value_t = SizeLaw::PAPER.median_mi, value_name = "MI")]
    pub(crate) size_median_mi: f64,
    /// Spread of the log-normal task size: standard deviation of its logarithm
    #[arg(long, default_value_t = SizeLaw::PAPER.sigma, value_name = "S")]
    pub(crate) size_sigma: f64,
    /// Smallest task size; smaller draws are drawn again
    #[arg(long, default_value_t = SizeLaw::PAPER.min_mi, value_name = "MI")]
    pub(crate) size_min_mi: f64,
    /// Largest task size; larger draws are drawn again
    #[arg(long, default_value_t = SizeLaw::PAPER.max_mi, value_name = "MI")]
    pub(crate) size_max_mi: f64,
    /// Write here, whole or not at all; default: standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
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

fn order(text: &str) -> Result<Order, String> {
    Order::from_str(text).map_err(|what| format!("{what} (allowed: shuffled, round, sequential)"))
}

/// Reads `constant:GAP` or `poisson:RATE`.
fn arrivals(text: &str) -> Result<Arrivals, String> {
    let known = "constant:GAP such as constant:10ms, poisson:RATE in requests a second";
    let (process, value) = text
        .split_once(':')
        .ok_or_else(|| format!("no value (allowed: {known})"))?;
    match process {
        "constant" => {
            let gap: Duration = schema::duration::parse(value)?;
            let interval_ms = gap.as_nanos() as f64 / 1e6;
            bounded(interval_ms, 1e-3, MAX_INTERVAL_MS, "ms")
                .map(|interval_ms| Arrivals::Constant { interval_ms })
        }
        "poisson" => {
            let rate_rps: f64 = value
                .parse()
                .map_err(|_| format!("rate \"{value}\" is not a number"))?;
            bounded(rate_rps, 1e-3, MAX_RATE_RPS, "requests a second")
                .map(|rate_rps| Arrivals::Poisson { rate_rps })
        }
        _ => Err(format!("unknown arrival process (allowed: {known})")),
    }
}

fn bounded(value: f64, min: f64, max: f64, unit: &str) -> Result<f64, String> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(format!("out of range (allowed: {min} to {max} {unit})"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cli, arrivals};
    use clap::CommandFactory as _;
    use schema::workload::Arrivals;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arrivals_need_a_known_process_and_a_value_within_bounds() {
        let every_10_ms = Arrivals::Constant { interval_ms: 10.0 };
        assert_eq!(arrivals("constant:10ms"), Ok(every_10_ms));
        assert_eq!(
            arrivals("poisson:80.5"),
            Ok(Arrivals::Poisson { rate_rps: 80.5 })
        );
        for bad in [
            "constant",
            "constant:10",
            "constant:0ms",
            "constant:2h",
            "poisson:0",
            "poisson:-1",
            "poisson:NaN",
            "poisson:inf",
            "poisson:x",
            "uniform:3",
        ] {
            assert!(arrivals(bad).is_err(), "{bad}");
        }
    }
}

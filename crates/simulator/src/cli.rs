//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

const EXAMPLES: &str = "\
Examples:
  simulator --workload workloads/quick.json --target http://127.0.0.1:8080 --out rows.csv
  simulator --workload workloads/paper.json --target http://127.0.0.1:8080 --out rows.csv \\
      --warmup 500 --strategy-label round-robin --run-id bench1-3-2 --block 3 --json
  simulator --workload load.json --target http://127.0.0.1:8080 --out rows.csv --speed 2
  simulator --workload load.json --target http://127.0.0.1:8080 --out rows.csv --slots 20 --calls 3

Exit codes: 0 done, 1 failed (target unreachable, rows not writable), 2 bad usage or input,
3 the client itself was too slow to keep the schedule, 130 and 143 after SIGINT and SIGTERM.";

/// Most requests in flight unless told otherwise.
pub(crate) const DEFAULT_MAX_IN_FLIGHT: usize = 2048;
/// Bounds of `--timeout`.
const TIMEOUT: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(3600)];

/// Open-loop replay client: one CSV row per request.
#[derive(Debug, Parser)]
#[command(name = "simulator", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// The workload file
    #[arg(long, value_name = "FILE")]
    pub(crate) workload: PathBuf,
    /// Where to send: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) target: String,
    /// Rows go here; an existing file is replaced. With /dev/stdout the summary goes to standard error
    #[arg(long, value_name = "CSV", overrides_with = "out")]
    pub(crate) out: PathBuf,
    /// Replay this many times faster than the workload says
    #[arg(long, default_value_t = 1.0, value_name = "X", value_parser = speed)]
    pub(crate) speed: f64,
    /// The first N requests are marked as warm-up
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) warmup: usize,
    /// Give up on a request this long after it was sent; larger than the balancer's own limit
    #[arg(long, default_value = "30s", value_name = "D", value_parser = timeout)]
    pub(crate) timeout: Duration,
    /// Most requests in flight; what is due beyond that is recorded as never sent [default: 2048]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_in_flight: Option<u32>,
    /// The run is marked `generator_saturated` when the 99th percentile of the lateness is above this
    /// [default: 1 ms or a tenth of the mean gap, whichever is larger]
    #[arg(long, value_name = "D", value_parser = schema::duration::parse)]
    pub(crate) lag_bound: Option<Duration>,
    /// Closed loop instead: keep exactly C calls in flight, whatever the due times are
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with_all = ["speed", "lag_bound"])]
    pub(crate) slots: Option<u32>,
    /// Calls of one user action (closed loop); an action is good if all its calls are
    #[arg(long, default_value_t = 1, value_name = "K", requires = "slots", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) calls: u32,
    /// Callers of the closed loop; the next call is drawn from those that wait [default: 21 x C]
    #[arg(long, value_name = "N", requires = "slots", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) callers: Option<u32>,
    /// Goes into the column `strategy`; default: what the balancer says
    #[arg(long, value_name = "S")]
    pub(crate) strategy_label: Option<String>,
    /// Name of this replay: column `run_id` and first part of every x-request-id
    /// [default: run-UNIXSECONDS]
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
    /// Goes into the column `block`
    #[arg(long, value_name = "N")]
    pub(crate) block: Option<u32>,
    /// No progress bar and no preview
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON instead of the preview
    #[arg(long)]
    pub(crate) json: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (1e-3..=1e6).contains(&speed) => Ok(speed),
        _ => Err("not a usable speed (allowed: 0.001 to 1000000)".into()),
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = schema::duration::parse(text)?;
    let [min, max] = TIMEOUT;
    if (min..=max).contains(&timeout) {
        Ok(timeout)
    } else {
        Err("out of range (allowed: 1ms to 1h)".into())
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

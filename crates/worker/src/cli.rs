//! The command line.

use clap::{Args, Parser, Subcommand};
use schema::stats::Discipline;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where a worker listens unless told otherwise, and where `healthcheck` looks.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:9000";

/// A c-core machine made of real instructions, behind HTTP: each request executes (or, emulated,
/// takes the time of) the millions of instructions it asks for.
#[derive(Debug, Parser)]
#[command(
    name = "worker",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  worker --listen 127.0.0.1:9001 --name a --cores 4 --memory-gb 12 --pool-cores 9
      four cores of 7,450 MIPS, processor sharing, one of three workers with nine cores together
  worker --cores 2 --mips-per-core native
      every instruction is run, flat out; needs two idle cores
  curl -H 'x-task-size-mi: 400' http://127.0.0.1:9001/users/orders
  curl 'http://127.0.0.1:9001/users/orders?mi=400'
  worker burn --mi 562
  worker calibrate
  worker healthcheck --url http://127.0.0.1:9001/healthz
  worker selftest"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What else the program does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Burn N million instructions once and print {mi, wall_ms, mips} as JSON
    #[command(after_help = "Example:\n  worker burn --mi 562")]
    Burn {
        /// Work, millions of instructions
        #[arg(long, value_name = "N")]
        mi: f64,
    },
    /// Measure the speed of the instruction loop on this host and print it as JSON
    #[command(after_help = "Example:\n  worker calibrate")]
    Calibrate,
    /// Ask a worker whether it is healthy: exit 0 if it is, 1 if not
    #[command(after_help = "Example:\n  worker healthcheck --url http://127.0.0.1:9001/healthz")]
    Healthcheck {
        /// Address to ask; the path is /healthz unless one is given
        #[arg(long, default_value = "http://127.0.0.1:9000/healthz")]
        url: String,
        /// How long to wait for the answer
        #[arg(long, default_value = "2s", value_parser = schema::duration::parse)]
        timeout: Duration,
    },
    /// Compare three running workers with an exact model: exit 3 beyond 2 % (mean) or 5 % (p95)
    #[command(
        after_help = "Examples:\n  worker selftest\n  worker selftest --json --loads 0.8 --seconds 30"
    )]
    Selftest(SelftestArgs),
}

/// Flags of a serving worker.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// Address to serve on; port 0 takes a free one
    #[arg(long, default_value = DEFAULT_LISTEN, value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// Name in answers, statistics and logs
    #[arg(long, default_value = "worker")]
    pub(crate) name: String,
    /// Cores of the machine; may be fractional
    #[arg(long, default_value_t = 1.0, value_name = "C")]
    pub(crate) cores: f64,
    /// Memory limit to report, GB of 2^30 bytes
    #[arg(long, default_value_t = 1.0, value_name = "GB")]
    pub(crate) memory_gb: f64,
    /// Speed of a core in MIPS, or `native` to run flat out
    #[arg(long, default_value = "7450", value_name = "M|native")]
    pub(crate) mips_per_core: String,
    /// Fraction of the instructions really executed, or `auto`: what the host has room for
    #[arg(long, default_value = "auto", value_name = "F|auto")]
    pub(crate) burn_fraction: String,
    /// Cores of all workers on this host together, for `--burn-fraction auto` [default: --cores]
    #[arg(long, value_name = "C")]
    pub(crate) pool_cores: Option<f64>,
    /// Load of the pool to expect, for `--burn-fraction auto`
    #[arg(long, default_value_t = 0.8, value_name = "RHO")]
    pub(crate) expected_load: f64,
    /// How requests share the cores: ps (processor sharing) or fcfs (first come, first served)
    #[arg(long, default_value = "ps", value_name = "ps|fcfs")]
    pub(crate) discipline: Discipline,
    /// Memory to touch and hold per request, MiB
    #[arg(long, default_value_t = 0.25, value_name = "MIB")]
    pub(crate) memory_per_request_mib: f64,
    /// Requests held at once; one more is answered 503
    #[arg(long, default_value_t = 4096, value_name = "N")]
    pub(crate) max_active: u32,
    /// Largest request body, MiB; a larger one is answered 413
    #[arg(long, default_value_t = 10, value_name = "MIB")]
    pub(crate) max_body_mib: u32,
    /// Connections open at once; the longest idle one is closed for one more
    #[arg(long, default_value_t = 4096, value_name = "N")]
    pub(crate) max_connections: u32,
    /// How long a stop waits for the requests held
    #[arg(long, default_value = "30s", value_parser = schema::duration::parse)]
    pub(crate) drain_timeout: Duration,
    /// Address of the admin listener (POST /api/reset)
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<SocketAddr>,
    /// Allow an admin address other than loopback without a token
    #[arg(long)]
    pub(crate) admin_open: bool,
    /// File with the admin token (at least 32 characters); or set PLUMBLINE_ADMIN_TOKEN
    #[arg(long, value_name = "F")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Append one JSON line per attempt to this file
    #[arg(long, value_name = "F")]
    pub(crate) request_log: Option<PathBuf>,
    /// Disclose the work left of every request held, in /stats and in a response header
    #[arg(long)]
    pub(crate) tell_work_left: bool,
}

impl ServeArgs {
    /// Whether the admin listener is meant to be reached from elsewhere.
    pub(crate) fn is_admin_for_others(&self) -> bool {
        self.admin_open || self.admin.is_some_and(|a| !a.ip().is_loopback())
    }
}

/// Flags of the self-test.
#[derive(Debug, Clone, Args)]
pub(crate) struct SelftestArgs {
    /// Cores of the workers, one process each; requests are split in this proportion
    #[arg(long, default_value = "4,3,2", value_delimiter = ',')]
    pub(crate) cores: Vec<f64>,
    /// Loads to run, shares of the total capacity
    #[arg(long, default_value = "0.42,0.615", value_delimiter = ',')]
    pub(crate) loads: Vec<f64>,
    /// How long requests arrive at each load, s
    #[arg(long, default_value_t = 20.0)]
    pub(crate) seconds: f64,
    /// Arrivals: poisson or constant gaps
    #[arg(long, default_value = "poisson")]
    pub(crate) arrivals: ArrivalLaw,
    /// Speed of a core, MIPS
    #[arg(long, default_value_t = 7450.0)]
    pub(crate) mips_per_core: f64,
    /// Fraction of the instructions really executed, or `auto`
    #[arg(long, default_value = "auto", value_name = "F|auto")]
    pub(crate) burn_fraction: String,
    /// How requests share the cores: ps or fcfs
    #[arg(long, default_value = "ps", value_name = "ps|fcfs")]
    pub(crate) discipline: Discipline,
    /// Seed of sizes and arrivals
    #[arg(long, default_value_t = 42, value_parser = schema::rng::parse_seed)]
    pub(crate) seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How requests arrive in the self-test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ArrivalLaw {
    /// Exponential gaps.
    Poisson,
    /// Equal gaps.
    Constant,
}

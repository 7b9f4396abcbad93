//! The flags of `import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Capacity, SizeArguments};
use crate::import::MAX_ROWS;

pub(super) const HELP: &str = "\
Formats:
  csv        timestamp,method,url[,task_size_mi], with or without that header. A timestamp is a
             number (--timestamp-unit) or a date such as 2023-11-16 18:17:03.97 (UTC unless it has
             an offset). Without task_size_mi each method and URL gets a size by --sizes.
  clf        common log format, and what begins like it (combined). Sizes by --sizes.
  azure-llm  TIMESTAMP,ContextTokens,GeneratedTokens. One API; a request takes
             --mi-per-context-token and --mi-per-generated-token for each token, at least 1 MI.

Time 0 is the first stamp. Rows are sorted by time. If every stamp is a whole second, requests are
spread uniformly within their second by the seed. Scheme, host and query of a URL are left out.

Examples:
  request-generator import --format azure-llm workloads/traces/azure-llm-2023-code.csv --out w.json
  request-generator import --format azure-llm trace.csv --speed 20 --limit 5000 --out w.json
  request-generator import --format clf access.log --skip-bad-rows --sizes constant:400 --out w.json
  request-generator import --format csv calls.csv --timestamp-unit ms --out w.json";

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The trace
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// What it is
    #[arg(long)]
    pub(crate) format: Format,
    /// Replay this many times as fast: 2 halves every gap
    #[arg(long, default_value_t = 1.0, value_name = "X")]
    pub(crate) speed: f64,
    /// Root of every random draw: sizes by --sizes, moments within a second
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = schema::rng::parse_seed)]
    pub(crate) seed: u64,
    /// Import only the first N requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ROWS)))]
    pub(crate) limit: Option<u32>,
    /// Leave rows out that cannot be used and say how many, instead of refusing the trace
    #[arg(long)]
    pub(crate) skip_bad_rows: bool,
    /// Keep requests of a whole second together instead of spreading them within it
    #[arg(long)]
    pub(crate) keep_stamps: bool,
    /// Keep the query of a URL; each makes an API of its own
    #[arg(long)]
    pub(crate) keep_query: bool,
    /// Unit of numbers in a csv trace's timestamp
    #[arg(long, default_value = "s", value_name = "UNIT")]
    pub(crate) timestamp_unit: TimestampUnit,
    /// Million instructions for each token read, in an azure-llm trace
    #[arg(long, default_value_t = 0.1, value_name = "MI")]
    pub(crate) mi_per_context_token: f64,
    /// Million instructions for each token written, in an azure-llm trace
    #[arg(long, default_value_t = 2.0, value_name = "MI")]
    pub(crate) mi_per_generated_token: f64,
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

/// What a trace looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Csv,
    Clf,
    AzureLlm,
}

impl Format {
    /// As it is typed.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Clf => "clf",
            Self::AzureLlm => "azure-llm",
        }
    }
}

/// What a number in a timestamp column counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimestampUnit {
    S,
    Ms,
    Us,
    Ns,
}

impl TimestampUnit {
    /// As it is typed.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::S => "s",
            Self::Ms => "ms",
            Self::Us => "us",
            Self::Ns => "ns",
        }
    }

    /// Nanoseconds of one.
    pub(crate) fn ns(self) -> i64 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Ns => 1,
        }
    }
}

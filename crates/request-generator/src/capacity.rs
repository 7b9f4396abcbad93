//! The capacity that a rate in percent is a share of.

use schema::problem::Problem;

use crate::cli;
use crate::sizes::in_range;

/// Most workers in a list of cores.
const MAX_WORKERS: usize = 100_000;

/// Cores and their speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Capacity {
    pub(crate) cores: f64,
    pub(crate) mips_per_core: f64,
}

impl Capacity {
    /// What the flags stand for.
    ///
    /// # Errors
    /// The flag and the bound.
    pub(crate) fn new(arguments: &cli::Capacity) -> Result<Self, Box<Problem>> {
        let refuse = |what: &str| {
            Problem::new("--cores", &arguments.cores, what)
                .allowed("cores of each worker such as 4,3,2, each 0.05 to 1024")
        };
        let mut cores = 0.0;
        for (i, text) in arguments.cores.split(',').enumerate() {
            if i == MAX_WORKERS {
                return Err(refuse("too many workers").into());
            }
            let worker: f64 = text
                .trim()
                .parse()
                .map_err(|_| refuse(&format!("\"{text}\" is not a number")))?;
            if !(0.05..=1024.0).contains(&worker) {
                return Err(refuse("out of range").into());
            }
            cores += worker;
        }
        in_range("--mips-per-core", arguments.mips_per_core, &(1.0..=1e6))?;
        Ok(Self {
            // Tenths of cores that were added up are tenths again.
            cores: (cores * 1e6).round() / 1e6,
            mips_per_core: arguments.mips_per_core,
        })
    }

    /// Requests a second of `mean_mi` that keep every core busy.
    pub(crate) fn full_rps(self, mean_mi: f64) -> f64 {
        self.cores * self.mips_per_core / mean_mi
    }

    /// What `mean_mi` every `gap_ms` is of it, in words.
    pub(crate) fn load(self, mean_mi: f64, gap_ms: f64) -> String {
        let load = 1000.0 / gap_ms / self.full_rps(mean_mi);
        let Self {
            cores,
            mips_per_core,
        } = self;
        format!("load {load:.3} of {cores} cores at {mips_per_core} MIPS")
    }
}

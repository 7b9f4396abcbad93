//! Bench presets: which workload, strategies, blocks, loads and warm-up.

use clap::ValueEnum;
use evidence::blocks_needed;
use schema::laws::arrivals::Arrivals;
use schema::problem::{Problem, Problems};
use schema::workload::{Traffic, Workload};

use crate::programs::Registered;

const QUICK: &str = include_str!("../../../../workloads/quick.json");
const PAPER: &str = include_str!("../../../../workloads/paper.json");
/// Calls of each API in a smoke test: two seconds of requests.
const SMOKE_RUNS: u32 = 2;
/// Warm-up of the long presets: at least this long and this many requests.
const WARMUP_S: f64 = 10.0;
const WARMUP_REQUESTS: u64 = 1000;
/// Warm-up of the short presets, as a share of the arm: one part in five.
const SHORT_WARMUP_PARTS: u64 = 5;

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Under 20 seconds: does everything work? Two blocks, no claim
    Smoke,
    /// About 6 minutes: 7 blocks of arms of 8 seconds; more for more strategies
    Quick,
    /// About an hour: the paper's workload, 200 seconds an arm, 6 blocks; more for more strategies
    Paper,
    /// Hours to days: every strategy at loads 0.3, 0.42, 0.6 and 0.8
    Full,
}

impl Preset {
    /// As it stands in names and manifests.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Paper => "paper",
            Self::Full => "full",
        }
    }

    /// The strategies when none are named; `registered` are all that exist, in their order. Without
    /// models those that need one are left out.
    pub(crate) fn strategies(self, registered: &[Registered], models: bool) -> Vec<String> {
        let able = |r: &&Registered| models || !r.needs_model;
        let wanted: &[&str] = match self {
            Self::Smoke => &["round-robin", "smooth-weighted-round-robin"],
            Self::Paper => &["round-robin", "smooth-weighted-round-robin", "plb-paper"],
            Self::Quick => &[
                "round-robin",
                "smooth-weighted-round-robin",
                "weighted-least-request",
                "plb-live",
            ],
            Self::Full => {
                return registered
                    .iter()
                    .filter(able)
                    .map(|r| r.name.clone())
                    .collect();
            }
        };
        let known = |name: &&str| registered.iter().filter(able).any(|r| r.name == *name);
        wanted
            .iter()
            .copied()
            .filter(known)
            .map(String::from)
            .collect()
    }

    /// Blocks when none are asked for: enough for `comparisons` claims, except in a smoke test.
    pub(crate) fn blocks(self, comparisons: usize) -> u32 {
        match self {
            Self::Smoke => 2,
            Self::Quick => blocks_needed(comparisons).max(7),
            Self::Paper | Self::Full => blocks_needed(comparisons),
        }
    }

    /// The workload when none is named.
    pub(crate) fn workload(self) -> Result<Workload, Problems> {
        match self {
            Self::Smoke => {
                let mut workload = Workload::parse("workloads/quick.json", QUICK)?;
                if let Traffic::Drawn(drawn) = &mut workload.traffic {
                    drawn.runs = SMOKE_RUNS;
                }
                workload.name = "smoke".into();
                Ok(workload.sealed())
            }
            Self::Quick => Workload::parse("workloads/quick.json", QUICK),
            Self::Paper | Self::Full => Workload::parse("workloads/paper.json", PAPER),
        }
    }

    /// Loads to run at, one result folder each; `None` is the workload's own.
    pub(crate) fn loads(self) -> Vec<Option<f64>> {
        match self {
            Self::Full => [0.3, 0.42, 0.6, 0.8].map(Some).into(),
            _ => vec![None],
        }
    }

    /// Leading requests of each arm that are flagged as warm-up.
    pub(crate) fn warmup_requests(self, workload: &Workload) -> u64 {
        let requests = workload.requests();
        match self {
            Self::Smoke | Self::Quick => requests / SHORT_WARMUP_PARTS,
            Self::Paper | Self::Full => {
                let seconds = (WARMUP_S * rate_rps(workload)).ceil() as u64;
                seconds.max(WARMUP_REQUESTS).min(requests / 2)
            }
        }
    }
}

/// Mean arrival rate, requests a second.
pub(crate) fn rate_rps(workload: &Workload) -> f64 {
    1000.0 / workload.mean_gap_ms()
}

/// Offered load on `capacity_mips`.
pub(crate) fn load(workload: &Workload, capacity_mips: f64) -> f64 {
    rate_rps(workload) * workload.mean_task_size_mi() / capacity_mips
}

/// The same workload, faster or slower, so that it offers `load` on `capacity_mips`.
///
/// # Errors
/// A gap or rate beyond the workload format's bounds.
pub(crate) fn at_load(
    workload: Workload,
    asked: f64,
    capacity_mips: f64,
) -> Result<Workload, Problems> {
    let speed = asked / load(&workload, capacity_mips);
    let mut workload = workload.at_speed(speed).map_err(|problems| {
        Problem::new("--load", asked.to_string(), "needs an impossible rate")
            .next(problems.to_string())
    })?;
    if let Traffic::Drawn(drawn) = &mut workload.traffic
        && let Arrivals::Constant { interval_ms } = &mut drawn.arrivals
    {
        // Whole microseconds read well and keep the load within a ten-thousandth.
        *interval_ms = (*interval_ms * 1e3).round().max(1.0) / 1e3;
    }
    Ok(workload.sealed())
}

#[cfg(test)]
mod tests {
    use super::{Preset, at_load, load};

    const CAPACITY_MIPS: f64 = 9.0 * 7450.0;

    #[test]
    fn the_papers_workload_is_a_load_of_615_thousandths() {
        let paper = Preset::Paper.workload().expect("built in");
        assert_eq!(paper.requests(), 20_000);
        assert!((load(&paper, CAPACITY_MIPS) - 0.6145).abs() < 0.002);
        assert_eq!(Preset::Paper.warmup_requests(&paper), 1000);
        assert_eq!(Preset::Paper.blocks(1), 6);
    }

    #[test]
    fn short_presets_say_a_fifth_is_warm_up() {
        let quick = Preset::Quick.workload().expect("built in");
        assert_eq!(
            (quick.requests(), Preset::Quick.warmup_requests(&quick)),
            (800, 160)
        );
        assert_eq!(Preset::Quick.blocks(2), 7);
        let smoke = Preset::Smoke.workload().expect("built in");
        assert_eq!(
            (smoke.requests(), Preset::Smoke.warmup_requests(&smoke)),
            (200, 40)
        );
    }

    #[test]
    fn a_scaled_workload_offers_the_load_asked_for() {
        let paper = Preset::Paper.workload().expect("built in");
        for wanted in [0.3, 0.42, 0.8] {
            let scaled = at_load(paper.clone(), wanted, CAPACITY_MIPS).expect("possible");
            assert!((load(&scaled, CAPACITY_MIPS) - wanted).abs() < 1e-4);
            assert_ne!(scaled.sha256, paper.sha256);
        }
        assert!(at_load(paper, 1e9, CAPACITY_MIPS).is_err());
    }
}

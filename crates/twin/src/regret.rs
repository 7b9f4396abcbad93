//! `twin regret`: what each pick of recorded runs cost beyond the best one, with hindsight.
//!
//! Reading order: [`rows`] and [`log`] (what was recorded), [`stays`] (when requests were where),
//! [`rebuild`] (the work left at a pick), [`judge`] (its price, the least, the difference), [`gap`]
//! (means beside a baseline and an oracle). Every worker counts as a candidate of every pick.

mod folder;
mod gap;
mod judge;
mod log;
mod print;
mod rebuild;
mod rows;
mod stays;
#[cfg(test)]
mod tests;

use crate::build::{self, MIPS_PER_CORE, refuse};
use clap::Args;
use gap::Schedule;
use judge::{Verdict, judge};
use rebuild::{Discipline, Stay, Worker};
use rows::{Run, Runs};
use schema::problem::{Problem, Problems};
use schema::scenario::Scenario;
use schema::stats;
use std::path::{Path, PathBuf};

/// Candidates of a pick at most: each is priced.
const MAX_WORKERS: usize = 1000;
/// A worker whose requests tell of a speed this far from the stated one is not the one that was stated.
const SPEED_BOUNDS: std::ops::RangeInclusive<f64> = 0.8..=1.25;
/// Share of their time that requests may wait at workers that are said to serve all at once.
const MAX_WAIT_SHARE: f64 = 0.01;

/// `twin regret`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Result folder of `testbed bench`
    #[arg(required_unless_present = "rows", conflicts_with_all = ["rows", "cores", "speeds", "mips_per_core"])]
    folder: Option<PathBuf>,
    /// Rows of `twin run --out`, or of any run, one file or more
    #[arg(long, value_name = "ROWS_CSV", num_args = 1.., requires = "cores")]
    rows: Vec<PathBuf>,
    /// Cores of each worker, such as 4,3,2, named a, b, c as the twin does
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    cores: Option<String>,
    /// Speed of each worker's cores, 1 = nominal (default)
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    speeds: Option<String>,
    /// Speed of a nominal core, MIPS (default 7450)
    #[arg(long, value_name = "M", allow_hyphen_values = true)]
    mips_per_core: Option<String>,
    /// How workers serve: ps or fcfs [default: as the result says, of rows ps]
    #[arg(long, value_name = "D")]
    discipline: Option<stats::Discipline>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The machines behind the rows.
#[derive(Debug, Clone, PartialEq)]
struct Setting {
    workers: Vec<Worker>,
    discipline: Discipline,
    mips_per_core: f64,
}

/// A run and what its picks come to.
#[derive(Debug, Clone, PartialEq)]
struct Judged {
    source: String,
    run_id: String,
    block: Option<u32>,
    strategy: String,
    verdict: Verdict,
    schedule: Schedule,
    /// Mean latency of the good answers after the warm-up; none if there are none or the run is marked
    /// unstable.
    mean_ms: Option<f64>,
    /// Requests after the warm-up that were not answered well.
    failed: u64,
}

/// Reads, judges and prints.
///
/// # Errors
/// Bad input ([`Problem`], exit 2).
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (setting, runs) = match &arguments.folder {
        Some(root) => folder::judge_all(root, arguments.discipline)?,
        None => judge_files(arguments)?,
    };
    if arguments.json {
        console::say!("{}", serde_json::to_string(&print::json(&setting, &runs))?)?;
    } else {
        console::print(format_args!("{}", print::table(&setting, &runs)))?;
    }
    Ok(())
}

fn judge_files(arguments: &Arguments) -> Result<(Setting, Vec<Judged>), Problems> {
    let setting = setting(arguments)?;
    let mut judged = Vec::new();
    for path in &arguments.rows {
        let mut runs = Runs::open(path, setting.named_cores())?;
        while let Some(run) = runs.next_run()? {
            let stays = stays::from_rows(&run, setting.mips_per_core / 1e3)?;
            judged.push(setting.judge(path, run, &stays)?);
        }
    }
    Ok((setting, judged))
}

impl From<stats::Discipline> for Discipline {
    fn from(discipline: stats::Discipline) -> Self {
        match discipline {
            stats::Discipline::Ps => Self::Sharing,
            stats::Discipline::Fcfs => Self::InOrder,
        }
    }
}

fn setting(arguments: &Arguments) -> Result<Setting, Problems> {
    let mut scenario = Scenario::default();
    let given = [
        ("cores", "--cores", &arguments.cores),
        ("speeds", "--speeds", &arguments.speeds),
        ("mips_per_core", "--mips-per-core", &arguments.mips_per_core),
    ];
    for (field, flag, text) in given {
        if let Some(text) = text {
            scenario.set(field, flag, text)?;
        }
    }
    let workers = build::workers(&scenario)?.into_iter().map(|w| Worker {
        name: w.name,
        cores: w.cores,
        speed: w.speed,
    });
    Setting {
        workers: workers.collect(),
        discipline: arguments.discipline.unwrap_or_default().into(),
        mips_per_core: scenario.mips_per_core.unwrap_or(MIPS_PER_CORE),
    }
    .checked()
}

impl Setting {
    fn checked(self) -> Result<Self, Problems> {
        let n = self.workers.len();
        if n > MAX_WORKERS {
            let problem = Problem::new("--cores", n.to_string(), "too many workers");
            return refuse(problem.allowed(format!("up to {MAX_WORKERS}")));
        }
        Ok(self)
    }

    fn named_cores(&self) -> Vec<(&str, f64)> {
        let workers = self.workers.iter();
        workers.map(|w| (w.name.as_str(), w.cores)).collect()
    }

    fn judge(&self, source: &Path, run: Run, stays: &[Stay]) -> Result<Judged, Problems> {
        let source = source.display().to_string();
        let about = |what: String| {
            let field = format!("run {} of {}", run.run_id, run.strategy);
            Problem::new(field, "", what).in_source(&source)
        };
        self.check_waits(stays, about)?;
        let Some(verdict) = judge(&self.workers, self.discipline, stays) else {
            return refuse(about("no pick to judge: all is warm-up, or failed".into()));
        };
        self.check_speeds(&verdict, about)?;
        let counted = || run.requests.iter().filter(|r| !r.warmup);
        let latencies = counted().filter(|r| r.ok).filter_map(|r| {
            let (_, done_ns) = r.sent_done_ns?;
            Some(done_ns.saturating_sub(r.intended_ns) as f64 / 1e6)
        });
        let (n, sum_ms) = latencies.fold((0_u64, 0.0), |(n, sum), ms| (n + 1, sum + ms));
        Ok(Judged {
            schedule: Schedule::of(&run),
            mean_ms: (n > 0).then(|| sum_ms / n as f64),
            failed: counted().filter(|r| !r.ok).count() as u64,
            source,
            run_id: run.run_id,
            block: run.block,
            strategy: run.strategy,
            verdict,
        })
    }

    /// Rows of workers that serve in order can look as if those shared their cores.
    fn check_waits(
        &self,
        stays: &[Stay],
        about: impl Fn(String) -> Problem,
    ) -> Result<(), Problems> {
        let (mut waited, mut stayed) = (0.0, 0.0);
        for stay in stays.iter().filter(|s| s.told) {
            waited += stay.started_ms - stay.arrived_ms;
            stayed += stay.ended_ms - stay.arrived_ms;
        }
        if self.discipline == Discipline::InOrder || waited <= MAX_WAIT_SHARE * stayed {
            return Ok(());
        }
        let what = format!(
            "requests waited {:.1} % of their time at the workers, which do not share their cores then",
            100.0 * waited / stayed
        );
        let problem = about(what).allowed(format!("{:.0} %", 100.0 * MAX_WAIT_SHARE));
        refuse(problem.next("say --discipline fcfs if they serve in order"))
    }

    fn check_speeds(
        &self,
        verdict: &Verdict,
        about: impl Fn(String) -> Problem,
    ) -> Result<(), Problems> {
        let measured = self.workers.iter().zip(&verdict.measured_speeds);
        for (worker, speed) in measured {
            let Some(speed) = speed.filter(|s| !SPEED_BOUNDS.contains(s)) else {
                continue;
            };
            let what = format!(
                "worker {} ran at {speed:.3} of the speed stated",
                worker.name
            );
            let (low, high) = (SPEED_BOUNDS.start(), SPEED_BOUNDS.end());
            return refuse(about(what).allowed(format!("{low} to {high}")).next(
                "give the --cores, --speeds, --mips-per-core and --discipline that the rows were made \
                 with; rows of workers that changed speed cannot be judged",
            ));
        }
        Ok(())
    }
}

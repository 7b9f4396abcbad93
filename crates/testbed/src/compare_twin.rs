//! `compare-twin`: a recorded result against the twin that is given the same requests.
//!
//! For every arm the requests as they were sent, with the arm's strategy, seed and statistics
//! interval, go to the twin, whose workers run at a calibrated speed with a fixed overhead as
//! network delay; `agreement` judges the two sets of latencies. When not to use: to find out whether
//! a strategy is better, which is what a bench is for.

mod calibrate;
mod drive;
mod recorded;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use schema::manifest::{Arm, Manifest};
use serde::Serialize;

use crate::agreement::gates::{Line, Scope, Verdict, lines, spread};
use crate::agreement::residuals::{Residuals, residuals};
use crate::agreement::speed::Calibration;
use crate::agreement::{Pair, pairs, requests};
use crate::cli::CompareTwinArgs;
use crate::figures::intervals::mean;
use crate::folder::write_atomically;
use crate::plan::order::stem;
use crate::programs::Programs;

use recorded::Recorded;

/// Version tag of agreement.json.
const SCHEMA: &str = "plumbline.agreement/1";

/// Everything a comparison found.
#[derive(Debug, Serialize)]
struct Agreement {
    schema: &'static str,
    result: String,
    calibration: Calibration,
    /// The two speeds of every worker are within 5 %.
    calibration_agrees: bool,
    strategies: Vec<OfStrategy>,
    arms: Vec<OfArm>,
    /// What the recorded run had and the twin was not given.
    not_modelled: Vec<String>,
    /// Gates that decide the exit code and were missed; empty when all were met.
    missed: Vec<String>,
}

/// All arms of a strategy together.
#[derive(Debug, Serialize)]
struct OfStrategy {
    strategy: String,
    scope: Scope,
    runs: usize,
    requests: usize,
    lines: Vec<Line>,
    residuals: Option<Residuals>,
}

/// One arm.
#[derive(Debug, Serialize)]
struct OfArm {
    run_id: String,
    block: u32,
    label: String,
    strategy: String,
    scope: Scope,
    /// Requests compared.
    requests: usize,
    lines: Vec<Line>,
    residuals: Option<Residuals>,
    /// The recorded log through a fresh dispatcher.
    parity: Option<drive::Parity>,
    /// Statistics as the twin was given them; absent without an event log.
    poll_interval_ms: Option<f64>,
    fetch_delay_ms: Option<f64>,
    /// Longest wait for reports before a pick, on both sides; absent where nobody was asked.
    ask_first_ms: Option<f64>,
    /// Marks of the recorded arm.
    flags: Vec<String>,
    late_burn_share: Option<f64>,
    lateness_p99_us: Option<f64>,
}

impl OfArm {
    /// A run that was not what it should have been is no evidence against the model.
    fn name_with_marks(&self) -> String {
        match self.flags.as_slice() {
            [] => self.run_id.clone(),
            marks => format!("{} ({})", self.run_id, marks.join(", ")),
        }
    }
}

/// Compares, prints and returns the exit code.
pub(crate) async fn run(arguments: &CompareTwinArgs) -> anyhow::Result<u8> {
    let mut recorded = Recorded::read(&arguments.results, &arguments.blocks)?;
    let programs = Programs::find()?;
    recorded.learn_waits(&programs)?;
    let twin = arguments
        .twin
        .clone()
        .unwrap_or_else(|| programs.path("twin"));
    if !twin.is_file() {
        bail!(
            "{}: no such program; build it with `make build` or name one with --twin",
            twin.display()
        );
    }
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => recorded.folder.path("agreement"),
    };
    fs::create_dir_all(&out).with_context(|| {
        format!(
            "cannot make {}; name another folder with --out",
            out.display()
        )
    })?;
    let calibration = calibrate::calibration(arguments, &recorded, &programs, &out).await?;
    write_json(&out.join("calibration.json"), &calibration)?;
    let agreement = compare(&recorded, &calibration, &programs, &twin, &out)?;
    write_json(&out.join("agreement.json"), &agreement)?;
    if arguments.json {
        console::say!("{}", serde_json::to_string_pretty(&agreement)?)?;
    } else {
        console::print(format_args!("{}", text::table(&agreement)))?;
        console::tell!("details in {}", out.join("agreement.json").display());
    }
    Ok(u8::from(!agreement.missed.is_empty()))
}

fn compare(
    recorded: &Recorded,
    calibration: &Calibration,
    programs: &Programs,
    twin: &Path,
    out: &Path,
) -> anyhow::Result<Agreement> {
    let mut arms = Vec::new();
    let mut by_strategy: BTreeMap<&str, Pool> = BTreeMap::new();
    for arm in &recorded.arms {
        let (of_arm, pairs) = compare_arm(recorded, arm, calibration, programs, twin, out)
            .with_context(|| format!("{}: {}", arm.run_id, arm.label))?;
        arms.push(of_arm);
        by_strategy.entry(&arm.strategy).or_default().add(pairs);
    }
    let strategies: Vec<OfStrategy> = by_strategy
        .into_iter()
        .map(|(strategy, pool)| pool.judge(strategy))
        .collect();
    let missed = missed(&strategies, &arms);
    Ok(Agreement {
        schema: SCHEMA,
        result: recorded.folder.root().display().to_string(),
        calibration: calibration.clone(),
        calibration_agrees: calibration.disagreeing().is_empty(),
        strategies,
        arms,
        not_modelled: not_modelled(&recorded.manifest),
        missed,
    })
}

fn compare_arm(
    recorded: &Recorded,
    arm: &Arm,
    calibration: &Calibration,
    programs: &Programs,
    twin: &Path,
    out: &Path,
) -> anyhow::Result<(OfArm, Vec<Pair>)> {
    let rows = recorded.rows_of(arm);
    let timing = recorded.timing_of(arm, &rows)?;
    let sends = requests::sends(&recorded.workload, &rows, timing.as_ref())?;
    let list = out.join(format!("{}.json", stem(arm)));
    write_atomically(&list, sends.workload.to_text().as_bytes())?;
    let run = drive::TwinRun {
        manifest: &recorded.manifest,
        arm,
        calibration,
        timing: timing.as_ref(),
        wait_ms: recorded.wait_ms(arm),
        models: &recorded.folder.path("models"),
    };
    let twin_rows = run.rows(twin, &list, &out.join(format!("{}.csv", stem(arm))))?;
    let pairs = pairs(&rows, &twin_rows, &sends.seqs);
    let parity = match recorded.log_of(arm) {
        Some(log) => Some(drive::parity(programs, &run, &log)?),
        None => None,
    };
    let scope = Scope::of(&arm.strategy);
    let of_arm = OfArm {
        run_id: arm.run_id.clone(),
        block: arm.block,
        label: arm.label.clone(),
        strategy: arm.strategy.clone(),
        scope,
        requests: pairs.len(),
        lines: lines(&pairs, scope),
        residuals: residuals(&pairs),
        parity,
        poll_interval_ms: timing.as_ref().map(|t| t.interval_ns as f64 / 1e6),
        fetch_delay_ms: timing.as_ref().map(|t| t.fetch_ns as f64 / 1e6),
        ask_first_ms: run.wait_ms,
        flags: arm.flags.clone(),
        late_burn_share: arm.late_burn_share,
        lateness_p99_us: arm.lateness_p99_us,
    };
    Ok((of_arm, pairs))
}

/// The arms of one strategy so far.
#[derive(Default)]
struct Pool {
    pairs: Vec<Pair>,
    real_means_ms: Vec<f64>,
    twin_means_ms: Vec<f64>,
}

impl Pool {
    fn add(&mut self, pairs: Vec<Pair>) {
        if pairs.is_empty() {
            return;
        }
        let of = |side: fn(&Pair) -> f64| mean(&pairs.iter().map(side).collect::<Vec<f64>>());
        self.real_means_ms.push(of(|p| p.real.latency_ms));
        self.twin_means_ms.push(of(|p| p.twin.latency_ms));
        self.pairs.extend(pairs);
    }

    fn judge(self, strategy: &str) -> OfStrategy {
        let scope = Scope::of(strategy);
        let mut lines = lines(&self.pairs, scope);
        lines.extend(spread(&self.real_means_ms, &self.twin_means_ms));
        OfStrategy {
            strategy: strategy.to_string(),
            scope,
            runs: self.real_means_ms.len(),
            requests: self.pairs.len(),
            lines,
            residuals: residuals(&self.pairs),
        }
    }
}

/// What decides the exit code.
fn missed(strategies: &[OfStrategy], arms: &[OfArm]) -> Vec<String> {
    let strategies = strategies
        .iter()
        .map(|s| (s.strategy.clone(), s.scope, &s.lines));
    let of_arms = arms
        .iter()
        .map(|a| (a.name_with_marks(), a.scope, &a.lines));
    let mut missed: Vec<String> = strategies
        .chain(of_arms)
        .filter(|(_, scope, _)| *scope == Scope::Requests)
        .flat_map(|(name, _, lines)| {
            let lines = lines.iter().filter(|l| l.verdict == Verdict::Missed);
            lines.map(move |l| format!("{name}: {}", text::in_words(l)))
        })
        .collect();
    for arm in arms {
        if arm.requests == 0 {
            missed.push(format!(
                "{}: no request was answered on both sides",
                arm.run_id
            ));
        }
        if let Some(parity) = arm.parity.as_ref().filter(|p| p.equal != p.picks) {
            let (equal, picks) = (parity.equal, parity.picks);
            missed.push(format!(
                "{}: {equal} of {picks} picks replay equal",
                arm.run_id
            ));
        }
    }
    missed
}

/// What the twin cannot be given.
fn not_modelled(manifest: &Manifest) -> Vec<String> {
    let mut left_out = vec![
        "single late or lost polls: the twin samples at the mean recorded interval and sees each \
         sample after the median recorded delay"
            .to_string(),
        "the spread of the overhead: the twin adds the same to every request".to_string(),
    ];
    if manifest.ask_first_ms.is_some() {
        left_out.push(
            "the time of a question before a pick: in the twin it takes the overhead of a request"
                .into(),
        );
    }
    if manifest.protection != "plain" {
        let what = "one repeat on a kept connection that was closed, and what becomes of a request whose \
                    client gives up";
        left_out.push(format!("of protection {}: {what}", manifest.protection));
    }
    left_out
}

fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    write_atomically(path, &text)
}

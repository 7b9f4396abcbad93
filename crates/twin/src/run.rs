//! `twin run`: one scenario under one strategy.

mod print;

use crate::build::{Plan, refuse};
use crate::cli::{Run, ScenarioFlags};
use crate::engine::{self, Source};
use crate::files::Files;
use crate::tally::{Outcome, Verdict};
use anyhow::Context;
use schema::fault::Timeline;
use schema::problem::{Problem, Problems};
use schema::scenario::Scenario;
use schema::workload::Workload;
use std::path::{Path, PathBuf};

/// The verdict on a run of which one sign of two says unstable is sought by so many more runs, each so
/// many times longer.
const LONGER_RUNS: u32 = 2;
const LONGER_BY: u64 = 4;

/// Runs and prints.
///
/// # Errors
/// Bad input ([`Problem`], exit 2); a file that cannot be read or written; a broken invariant.
pub fn run(arguments: &Run) -> anyhow::Result<()> {
    let scenario = scenario_of(&arguments.scenario)?;
    let workload = workload_of(&scenario)?;
    let plan = Plan::new(
        &scenario,
        workload.as_ref(),
        crate::models::load(&scenario.model)?,
    )?;
    let (plan, outcome) = simulate(plan, arguments)?;
    let (json, table) = shown(&plan, &outcome)?;
    if arguments.json {
        println!("{json}");
    } else {
        print!("{table}");
    }
    Ok(())
}

/// What is printed of a run: JSON, and the table for people.
pub(crate) fn shown(plan: &Plan, outcome: &Outcome) -> anyhow::Result<(String, String)> {
    let json = serde_json::to_string(&print::Result::new(plan, outcome))?;
    Ok((json, print::table(plan, outcome)))
}

/// The scenario file, if there is one, with the flags over it.
///
/// # Errors
/// A file that cannot be read; everything wrong in it or in a flag.
pub fn scenario_of(flags: &ScenarioFlags) -> anyhow::Result<Scenario> {
    let mut scenario = match &flags.scenario {
        None => Scenario::default(),
        Some(path) => {
            let mut scenario = Scenario::parse(&path.display().to_string(), &text_of(path)?)?;
            // Files that a scenario names lie beside it.
            let beside = |name: String| {
                let folder = path.parent().unwrap_or(Path::new(""));
                folder.join(name).display().to_string()
            };
            scenario.workload = scenario.workload.map(beside);
            scenario
        }
    };
    let mut over = Scenario::default();
    for (field, flag, text) in flags.texts() {
        over.set(field, flag, text)?;
    }
    if let Some(path) = &flags.faults {
        over.faults = Some(Timeline::parse(
            &path.display().to_string(),
            &text_of(path)?,
        )?);
    }
    scenario = scenario.overridden_by(over);
    Ok(scenario)
}

/// The workload that a scenario names.
///
/// # Errors
/// A file that cannot be read or is no workload.
pub fn workload_of(scenario: &Scenario) -> anyhow::Result<Option<Workload>> {
    let Some(name) = &scenario.workload else {
        return Ok(None);
    };
    let path = PathBuf::from(name);
    Ok(Some(Workload::parse(name, &text_of(&path)?)?))
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    Ok(input::read_text(path).map_err(|problem| *problem)?)
}

fn simulate(plan: Plan, arguments: &Run) -> anyhow::Result<(Plan, Outcome)> {
    check_trace_end(&plan)?;
    if arguments.out.is_some() || arguments.event_log.is_some() {
        let setup = plan.setup.clone();
        let (rows, log) = (arguments.out.as_deref(), arguments.event_log.as_deref());
        let mut files = Files::create(&setup, plan.spec.to_string(), rows, log)?;
        let outcome = engine::run(&setup, &plan.spec, &mut files)?;
        files.finish().context("cannot write the run's files")?;
        return Ok((plan, outcome));
    }
    let mut outcome = engine::run(&plan.setup, &plan.spec, &mut ())?;
    outcome.verdict = settle(&plan, &outcome)?;
    Ok((plan, outcome))
}

/// The verdict, by longer runs while one of two signs says unstable; the figures stay those of the
/// run asked for. An offered load of all the capacity or more needs no sign.
fn settle(plan: &Plan, outcome: &Outcome) -> anyhow::Result<Verdict> {
    let mut verdict = outcome.verdict;
    let mut setup = plan.setup.clone();
    if !matches!(setup.source, Source::Open { .. }) || setup.faults.is_some() {
        return Ok(verdict);
    }
    for _ in 0..LONGER_RUNS {
        if !matches!(verdict, Verdict::Inconclusive { .. }) {
            break;
        }
        setup.requests *= LONGER_BY;
        setup.warmup *= LONGER_BY;
        verdict = engine::run(&setup, &plan.spec, &mut ())?.verdict;
    }
    let is_beyond = plan.load.is_some_and(|load| load >= 1.0);
    Ok(match verdict {
        Verdict::Stable if is_beyond => Verdict::Unstable {
            drift_rps: 0.0,
            worker: fullest(plan, outcome),
        },
        settled => settled.at_last(),
    })
}

/// The worker with the most picks for its capacity.
fn fullest(plan: &Plan, outcome: &Outcome) -> usize {
    let workers = plan.setup.workers.iter().zip(&outcome.shares);
    let loads = workers.map(|(w, share)| share / (w.cores * w.speed));
    let most = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
    loads.enumerate().fold((0, 0.0), most).0
}

/// A fault that outlasts a listed schedule is a mistake in one of the two.
fn check_trace_end(plan: &Plan) -> Result<(), Problems> {
    let (Some(timeline), Source::Trace { due, stretch, .. }) =
        (&plan.setup.faults, &plan.setup.source)
    else {
        return Ok(());
    };
    let rounds = plan.setup.requests.div_ceil(due.len() as u64) as f64;
    let last_s = due.last().map_or(0.0, |d| d.intended_ns as f64 * 1e-9) * stretch * rounds;
    for (i, event) in timeline.events.iter().enumerate() {
        let end = event.end().unwrap_or(event.at).as_secs_f64();
        if end > last_s {
            let field = format!("faults.events[{i}]");
            return refuse(
                Problem::new(
                    field,
                    format!("{end} s"),
                    "ends after the last request is due",
                )
                .allowed(format!("up to {last_s:.3} s")),
            );
        }
    }
    Ok(())
}

//! `twin run`: one scenario under one strategy.

mod print;

use crate::build::{Plan, check_begun, refuse};
use crate::cli::{Run, ScenarioFlags};
use crate::engine;
use crate::files::{self, Files, Wanted};
use crate::models;
use crate::settle::settled;
use crate::station::Model;
use crate::tally::Outcome;
use anyhow::Context;
use schema::fault::Timeline;
use schema::problem::{Problem, Problems};
use schema::scenario::Scenario;
use schema::workload::Workload;
use std::path::{Path, PathBuf};

/// Runs and prints.
///
/// # Errors
/// Bad input ([`Problem`], exit 2); a file that cannot be read or written; a broken invariant.
pub fn run(arguments: &Run) -> anyhow::Result<()> {
    let scenario = scenario_of(&arguments.scenario)?;
    let workload = workload_of(&scenario)?;
    let plan = Plan::new(&scenario, workload.as_ref(), models::load(&scenario.model)?)?;
    let (plan, outcome) = simulate(plan, &scenario, arguments)?;
    let (json, table) = shown(&plan, &outcome)?;
    if arguments.json {
        console::say!("{json}")?;
    } else {
        console::print(format_args!("{table}"))?;
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
            let folder = path.parent().unwrap_or(Path::new(""));
            scenario.workload = scenario.workload.map(|name| beside(folder, &name));
            let models = scenario.model.iter();
            scenario.model = models.map(|text| model_beside(folder, text)).collect();
            scenario
        }
    };
    let mut over = Scenario::default();
    for (field, flag, text) in flags.texts() {
        over.set(field, &flag, text)?;
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

/// The text of a file.
///
/// # Errors
/// It cannot be read, or is no text.
pub(crate) fn text_of(path: &Path) -> Result<String, Problems> {
    Ok(input::read_text(path).map_err(|problem| *problem)?)
}

/// Files that a scenario or a sweep names lie beside it, in its folder.
pub(crate) fn beside(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// The same of `[NAME=]F`.
pub(crate) fn model_beside(folder: &Path, text: &str) -> String {
    match text.split_once('=') {
        Some((name, path)) => format!("{name}={}", beside(folder, path)),
        None => beside(folder, text),
    }
}

/// Every file that a run reads.
fn inputs_of(flags: &ScenarioFlags, scenario: &Scenario) -> Vec<PathBuf> {
    let models = scenario.model.iter().flat_map(|m| models::paths(m));
    let workload = scenario.workload.iter().map(PathBuf::from);
    let named = workload.chain(models);
    named
        .chain(flags.scenario.clone())
        .chain(flags.faults.clone())
        .collect()
}

fn simulate(plan: Plan, scenario: &Scenario, arguments: &Run) -> anyhow::Result<(Plan, Outcome)> {
    let wanted = Wanted {
        rows: arguments.out.as_deref(),
        log: arguments.event_log.as_deref(),
        candidates: arguments.candidates.as_deref(),
    };
    if wanted.any() {
        let setup = plan.setup.clone();
        let outputs = wanted.outputs(setup.balancers);
        files::refuse_overwriting(&inputs_of(&arguments.scenario, scenario), &outputs)?;
        check_prices(&wanted, &setup.model)?;
        let mut files = Files::create(&setup, plan.spec.to_string(), wanted)?;
        let outcome = engine::run(&setup, &plan.spec, &mut files)?;
        files.finish().context("cannot write the run's files")?;
        check_begun(&setup, outcome.duration)?;
        return Ok((plan, outcome));
    }
    let outcome = settled(&plan)?;
    Ok((plan, outcome))
}

/// What a request would take is known of workers that share by these two rules.
fn check_prices(wanted: &Wanted<'_>, model: &Model) -> Result<(), Problems> {
    match (wanted.candidates, model) {
        (None, _) | (_, Model::Ps | Model::Fcfs) => Ok(()),
        (Some(path), _) => refuse(
            Problem::new(
                "--candidates",
                path.display().to_string(),
                "what a request would take is not known under this discipline",
            )
            .next("say --discipline ps or fcfs"),
        ),
    }
}

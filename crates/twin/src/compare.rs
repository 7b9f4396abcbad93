//! `twin compare`: strategies under the same requests, seed by seed.
//!
//! Replication r of every strategy is the run that `twin run` makes with the seed plus r, so all
//! strategies see the same requests and the differences vary far less than the means. A workload that
//! keeps its own times has another schedule in every replication but the first, as in the blocks of a
//! bench; listed requests are the same in all, which is told. The unit is the run. What may be claimed of
//! it: see [`figures`].

mod figures;
mod print;

use crate::build::{Plan, refuse};
use crate::cli::ScenarioFlags;
use crate::parallel;
use crate::run::{scenario_of, workload_of};
use crate::settle::settled;
use crate::tally::Outcome;
use clap::Args;
use figures::{Comparison, Measured, Metric};
use schema::problem::{Problem, Problems};
use schema::scenario::Scenario;
use strategies::Spec;
use strategies::registry::parse_list;

/// Fewest replications unless told otherwise: a claim needs six, and eight serve four comparisons.
const LEAST_REPLICATIONS: u32 = 8;
/// Most strategies of one comparison.
const MAX_STRATEGIES: usize = 100;

/// `twin compare`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Strategies, the baseline first; a piece key=value belongs to the strategy before it
    #[arg(long, value_name = "A,B,...")]
    strategies: String,
    /// Runs of each strategy, under seeds one after another (default 8, or as many as claims need)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    replications: Option<u32>,
    /// Threads (default: all cores); they change nothing but the time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one CSV line per strategy
    #[arg(long)]
    csv: bool,
    /// The scenario.
    #[command(flatten)]
    scenario: ScenarioFlags,
}

/// Runs and prints.
///
/// # Errors
/// Bad input ([`Problems`], exit 2); a broken invariant.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(one) = &arguments.scenario.strategy {
        let problem = Problem::new("--strategy", one, "a comparison has several");
        return Err(problem.next("name it in --strategies").into());
    }
    let specs = specs_of(&arguments.strategies)?;
    let scenario = scenario_of(&arguments.scenario)?;
    let workload = workload_of(&scenario)?;
    let models = crate::models::load(&scenario.model)?;
    let of_spec = |spec: &Spec| Scenario {
        strategy: Some(spec.to_string()),
        ..scenario.clone()
    };
    let scenarios: Vec<Scenario> = specs.iter().map(of_spec).collect();
    let plans: Vec<Plan> = scenarios
        .iter()
        .map(|scenario| Plan::new(scenario, workload.as_ref(), models.clone()))
        .collect::<Result<_, Problems>>()?;
    let replications = match arguments.replications {
        Some(replications) => replications,
        None => evidence::blocks_needed(specs.len() - 1).max(LEAST_REPLICATIONS),
    };
    let seeds = seeds(&scenario, replications)?;
    let threads = parallel::threads(arguments.threads);
    let drawn = workload.as_ref().filter(|w| plans[0].replays_draws(w));
    let plan_of = |at: usize, r: u32| match drawn {
        Some(_) => Plan::replica(&scenarios[at], drawn, models.clone(), r),
        None => Ok(plans[at].clone()),
    };
    let outcomes = replicate(plans.len(), plan_of, &seeds, threads)?;
    let comparison = Comparison::of(&arms(&plans, &outcomes));
    let told = print::Told {
        comparison: &comparison,
        plan: &plans[0],
        replications,
        is_one_list: plans[0].replays_list(workload.as_ref()),
    };
    if arguments.json {
        console::say!("{}", serde_json::to_string(&told.json())?)?;
    } else if arguments.csv {
        console::print(format_args!("{}", told.csv()))?;
    } else {
        console::print(format_args!("{}", told.text()))?;
    }
    Ok(())
}

fn specs_of(text: &str) -> Result<Vec<Spec>, Problems> {
    let bad = |what: String| Problem::new("--strategies", text, what);
    let specs = parse_list(text).map_err(|e| Problems::from(bad(e.to_string())))?;
    if specs.len() > MAX_STRATEGIES {
        let many = bad(format!("{} strategies", specs.len()));
        return refuse(many.allowed(format!("1 to {MAX_STRATEGIES}")));
    }
    for (i, spec) in specs.iter().enumerate() {
        if specs[..i].contains(spec) {
            return refuse(bad(format!("{spec} is named twice")).next("leave one out"));
        }
    }
    Ok(specs)
}

/// The seed of the scenario and those after it.
fn seeds(scenario: &Scenario, replications: u32) -> Result<Vec<u64>, Problems> {
    let (first, more) = (scenario.seed.unwrap_or(1), u64::from(replications) - 1);
    match first.checked_add(more) {
        Some(last) => Ok((first..=last).collect()),
        None => refuse(
            Problem::new("seed", first.to_string(), "no room for the seeds after it")
                .allowed(format!("0 to {}", u64::MAX - more)),
        ),
    }
}

/// The outcomes of so many strategies by strategy and seed, the same for any number of threads; `plan_of`
/// gives the plan of a strategy and replication.
fn replicate(
    strategies: usize,
    plan_of: impl Fn(usize, u32) -> Result<Plan, Problems> + Sync,
    seeds: &[u64],
    threads: usize,
) -> anyhow::Result<Vec<Vec<Outcome>>> {
    let tasks = vec![1; strategies * seeds.len()];
    let mut outcomes = parallel::in_order(threads, &tasks, |at| {
        let r = at % seeds.len();
        let mut plan = plan_of(at / seeds.len(), r as u32)?;
        plan.setup.seed = seeds[r];
        settled(&plan)
    })
    .into_iter();
    (0..strategies)
        .map(|_| outcomes.by_ref().take(seeds.len()).collect())
        .collect()
}

fn arms(plans: &[Plan], outcomes: &[Vec<Outcome>]) -> Vec<Measured> {
    let arms = plans.iter().zip(outcomes);
    arms.map(|(plan, outcomes)| Measured {
        spec: plan.spec.clone(),
        runs: outcomes.iter().map(Metric::all_of).collect(),
        shares: figures::mean_shares(outcomes),
        failed: outcomes.iter().map(|o| o.failed).sum(),
        doubtful: outcomes.iter().filter(|o| o.verdict.is_in_doubt()).count(),
    })
    .collect()
}

#[cfg(test)]
mod tests;

//! `twin optimum`: what is the best possible mean at this load?
//!
//! Nothing is simulated: every row is computed by the analytic crate. Dynamic rows solve the Markov chain
//! of up to three workers (seconds at a load of .9), splits are closed forms or bisection.

mod print;

use crate::build::MIPS_PER_CORE;
use analytic::chain::{Chain, ChainError, Rule};
use analytic::{OutOfBounds, Worker, split};
use clap::Args;
use schema::problem::{Problem, Problems};
use schema::scenario::Scenario;
use std::collections::BTreeMap;

/// `twin optimum`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Cores of each worker, such as 4,3,2 (default) or 1*1000; fractions allowed
    #[arg(
        long,
        value_name = "LIST",
        default_value = "4,3,2",
        allow_hyphen_values = true
    )]
    cores: String,
    /// Offered work over capacity, below 1
    #[arg(long, value_name = "RHO", allow_hyphen_values = true)]
    load: String,
    /// Speed of a core, MIPS (default 7450); with --mean-mi, means are given in ms too
    #[arg(long, value_name = "M", allow_hyphen_values = true)]
    mips_per_core: Option<String>,
    /// Mean size of a request, millions of instructions
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    mean_mi: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The question.
#[derive(Debug, Clone, PartialEq)]
struct Question {
    cores: Vec<f64>,
    load: f64,
    /// S, ms, if sizes and speed are known.
    service_ms: Option<f64>,
}

/// A mean, or why there is none.
#[derive(Debug, Clone, PartialEq)]
enum Mean {
    /// In units of S.
    Known(f64),
    /// Some worker is offered as much as it can do, or more.
    Unstable,
    /// Beyond what can be computed.
    NotComputed(String),
}

/// One row of the answer.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    key: &'static str,
    title: &'static str,
    /// The strategy that does this, where there is one.
    strategy: Option<&'static str>,
    sizes: Sizes,
    mean: Mean,
    shares: Option<Vec<f64>>,
}

/// For which sizes a row is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sizes {
    Any,
    Exponential,
}

/// Answers and prints.
///
/// # Errors
/// Bad input ([`Problem`], exit 2).
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let question = Question::of(arguments)?;
    let rows = question.answer()?;
    if arguments.json {
        console::say!("{}", serde_json::to_string(&print::json(&question, &rows))?)?;
    } else {
        console::print(format_args!("{}", print::table(&question, &rows)))?;
    }
    Ok(())
}

impl Question {
    fn of(arguments: &Arguments) -> Result<Self, Problems> {
        let mut scenario = Scenario::default();
        scenario.set("cores", "--cores", &arguments.cores)?;
        scenario.set("load", "--load", &arguments.load)?;
        if let Some(mips) = &arguments.mips_per_core {
            scenario.set("mips_per_core", "--mips-per-core", mips)?;
        }
        let load = scenario.load.unwrap_or_default();
        if load >= 1.0 {
            return Err(
                Problem::new("--load", &arguments.load, "nothing is stable at this load")
                    .allowed("above 0 and below 1")
                    .into(),
            );
        }
        let mips = scenario.mips_per_core.unwrap_or(MIPS_PER_CORE);
        let mean_mi = arguments.mean_mi.as_deref().map(mean_mi).transpose()?;
        Ok(Self {
            cores: scenario.cores.unwrap_or_default(),
            load,
            service_ms: mean_mi.map(|mi| mi / mips * 1e3),
        })
    }

    fn capacity(&self) -> f64 {
        self.cores.iter().sum()
    }

    fn rate(&self) -> f64 {
        self.load * self.capacity()
    }

    fn answer(&self) -> Result<Vec<Row>, Problems> {
        let workers = self.cores.iter().map(|c| Worker::try_new(*c, 1.0));
        let workers: Vec<Worker> = workers.collect::<Result<_, _>>().map_err(problem)?;
        let pool = Worker::try_new(self.capacity(), 1.0).map_err(problem)?;
        let mut rows = vec![Row {
            key: "pooled",
            title: "one pool of all cores (bound)",
            strategy: None,
            sizes: Sizes::Any,
            mean: known(pool.mean_response(self.rate())),
            shares: None,
        }];
        rows.extend(self.dynamic(&workers));
        let best = split::best(&workers, self.rate()).map_err(problem)?;
        let proportional = split::proportional(&workers);
        let equal = vec![1.0 / workers.len() as f64; workers.len()];
        let mean = |shares: &[f64]| known(split::mean_response(&workers, shares, self.rate()));
        let row = |key, title, strategy, mean, shares| Row {
            key,
            title,
            strategy,
            sizes: Sizes::Any,
            mean,
            shares: Some(shares),
        };
        rows.extend([
            row(
                "best_split",
                "best random split",
                None,
                Mean::Known(best.mean_response),
                best.shares,
            ),
            row(
                "weighted_split",
                "random split by cores",
                Some("weighted-random"),
                mean(&proportional),
                proportional,
            ),
            row(
                "equal_split",
                "equal random split",
                Some("random"),
                mean(&equal),
                equal,
            ),
        ]);
        Ok(rows)
    }

    /// The rows of the chain, side by side: each takes seconds at high load.
    fn dynamic(&self, workers: &[Worker]) -> Vec<Row> {
        let rules = [
            (
                "optimal",
                "best strategy on live counts",
                None,
                Rule::Optimal,
            ),
            (
                "sed",
                "least (n+1)/cores",
                Some("weighted-least-request"),
                Rule::ExpectedDelay,
            ),
            (
                "least_per_core",
                "least n/cores",
                Some("weighted-least-request:offset=0"),
                Rule::PerCapacity,
            ),
            (
                "jsq",
                "least n, whatever the cores",
                Some("least-request:ties=random"),
                Rule::Shortest,
            ),
        ];
        let solved = |rule: &Rule| match Chain::try_new(workers, self.rate()) {
            Ok(chain) => match chain.solve(rule) {
                Ok(solution) => Mean::Known(solution.mean_response),
                Err(ChainError::OutOfBounds(error)) => Mean::NotComputed(error.to_string()),
                Err(error) => Mean::NotComputed(error.to_string()),
            },
            Err(error) => Mean::NotComputed(error.to_string()),
        };
        let means: Vec<Mean> = std::thread::scope(|scope| {
            let running: Vec<_> = rules
                .iter()
                .map(|(_, _, _, rule)| scope.spawn(|| solved(rule)))
                .collect();
            let ended = running.into_iter().map(|thread| thread.join());
            ended
                .map(|mean| mean.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let rows = rules.into_iter().zip(means);
        rows.map(|((key, title, strategy, _), mean)| Row {
            key,
            title,
            strategy,
            sizes: Sizes::Exponential,
            mean,
            shares: None,
        })
        .collect()
    }
}

fn mean_mi(text: &str) -> Result<f64, Problems> {
    let value: Option<f64> = text.parse().ok();
    value.filter(|mi| (1e-3..=1e9).contains(mi)).ok_or_else(|| {
        let problem = Problem::new("--mean-mi", text, "no mean size");
        problem.allowed("0.001 to 1e9").into()
    })
}

/// A split overloads a worker exactly if its mean is out of bounds.
fn known(mean: Result<f64, OutOfBounds>) -> Mean {
    mean.map_or(Mean::Unstable, Mean::Known)
}

fn problem(error: OutOfBounds) -> Problems {
    let problem = Problem::new(error.name, error.value.to_string(), "out of range");
    problem.allowed(error.bound).into()
}

#[cfg(test)]
mod tests;

//! `worker selftest`: three running workers against an exact model of them.
//!
//! Three worker processes are started on this host, a replay sends them requests of 250 to 750 MI
//! split by smooth weighted round robin in proportion to their cores, and every request is compared
//! with an ideal machine ([`crate::model`]) fed the same arrival stamps and sizes. Two errors are
//! printed per load: of the machine (arrival at the worker to the answer being ready on its async
//! thread, late wake-ups included) and as the client saw it (send to last byte; its excess over the
//! machine's is HTTP, sockets and the client itself). The machine's decides.

mod replay;
mod report;

use crate::cli::{ArrivalLaw, SelftestArgs};
use crate::config::Config;
use crate::machine::Shape;
use anyhow::Context;
use replay::{Planned, Workers};
use report::{LoadResult, Verdict};
use schema::problem::{Problem, Problems};
use schema::rng::{self, Purpose};

/// Sizes: log-normal with this median and spread, drawn again outside the bounds, as
/// the request generator's default: mean 411.7.
const MEDIAN_MI: f64 = 395.0;
const SPREAD: f64 = 0.25;
const SIZES_MI: std::ops::RangeInclusive<f64> = 250.0..=750.0;

/// Runs the self-test and prints it; true if every load stayed within its bounds.
///
/// # Errors
/// Bad flags, or workers that do not start or answer.
pub(crate) fn run(args: &SelftestArgs) -> anyhow::Result<bool> {
    check(args)?;
    let mut results = Vec::new();
    for (i, load) in args.loads.iter().enumerate() {
        let workers = Workers::start(args).context("a worker did not start")?;
        let planned = plan(args, *load, i as u32);
        if !args.json {
            console::tell!(
                "load {load}: {} requests in {} s",
                planned.len(),
                args.seconds
            );
        }
        let (seen, setup) = workers.replay(&planned)?;
        let shapes: Vec<Shape> = args.cores.iter().map(|c| shape(args, *c)).collect();
        results.push(LoadResult::new(*load, &shapes, &planned, &seen, setup));
    }
    let verdict = Verdict::new(args, results);
    verdict.print(args.json)?;
    Ok(verdict.passed())
}

fn check(args: &SelftestArgs) -> Result<(), Problems> {
    let bad = |flag: &str, value: String, bound: &str| {
        Err(Problem::new(flag, value, "out of bounds")
            .allowed(bound)
            .into())
    };
    if args.cores.is_empty() || args.cores.len() > 26 {
        return bad("--cores", args.cores.len().to_string(), "1 to 26 workers");
    }
    if let Some(c) = args.cores.iter().find(|c| !(0.05..=64.0).contains(*c)) {
        return bad("--cores", c.to_string(), "0.05 to 64");
    }
    if let Some(load) = args.loads.iter().find(|l| !(0.01..=0.95).contains(*l)) {
        return bad("--loads", load.to_string(), "0.01 to 0.95");
    }
    if !(1.0..=3600.0).contains(&args.seconds) {
        return bad("--seconds", args.seconds.to_string(), "1 to 3600");
    }
    if !(100.0..=1e6).contains(&args.mips_per_core) {
        return bad(
            "--mips-per-core",
            args.mips_per_core.to_string(),
            "100 to 1000000",
        );
    }
    // The rest is checked as a worker would.
    replay::serve_args(args, 0)
        .map(|serve| Config::try_new(&serve))?
        .map(|_| ())
}

fn shape(args: &SelftestArgs, cores: f64) -> Shape {
    Shape {
        cores,
        discipline: args.discipline,
        mips_per_core: args.mips_per_core,
        burn_fraction: 0.0,
    }
}

/// The requests of one load: due time, worker, size.
fn plan(args: &SelftestArgs, load: f64, replication: u32) -> Vec<Planned> {
    let mut sizes = rng::stream(args.seed, Purpose::Sizes, 0, replication);
    let mut gaps = rng::stream(args.seed, Purpose::Arrivals, 0, replication);
    let pool_cores: f64 = args.cores.iter().sum();
    let mean_size_mi = 412.0;
    let rate_rps = load * pool_cores * args.mips_per_core / mean_size_mi;
    let requests = (args.seconds * rate_rps).ceil() as usize;
    let mut split = Split::new(&args.cores);
    let mut due_s = 0.0;
    (0..requests)
        .map(|_| {
            due_s += match args.arrivals {
                ArrivalLaw::Constant => 1.0 / rate_rps,
                ArrivalLaw::Poisson => rng::exponential(&mut gaps) / rate_rps,
            };
            let mi = loop {
                let mi = MEDIAN_MI * (SPREAD * rng::normal(&mut sizes)).exp();
                if SIZES_MI.contains(&mi) {
                    // As printed in a header.
                    break (mi * 10.0).round() / 10.0;
                }
            };
            Planned {
                due_ns: due_s * 1e9,
                worker: split.next(),
                mi,
            }
        })
        .collect()
}

/// Smooth weighted round robin: raise all by their weight, take the highest, lower it by the sum.
struct Split {
    weights: Vec<f64>,
    current: Vec<f64>,
}

impl Split {
    fn new(weights: &[f64]) -> Self {
        Self {
            weights: weights.to_vec(),
            current: vec![0.0; weights.len()],
        }
    }

    fn next(&mut self) -> usize {
        let mut best = 0;
        for i in 0..self.weights.len() {
            self.current[i] += self.weights[i];
            if self.current[i] > self.current[best] {
                best = i;
            }
        }
        self.current[best] -= self.weights.iter().sum::<f64>();
        best
    }
}

#[cfg(test)]
mod tests {
    use super::{Split, plan};
    use crate::cli::{Cli, Command};
    use clap::Parser;

    #[test]
    fn the_split_is_smooth_and_in_proportion() {
        let mut split = Split::new(&[4.0, 3.0, 2.0]);
        let picks: Vec<_> = (0..9).map(|_| split.next()).collect();
        assert_eq!(picks, [0, 1, 2, 0, 1, 0, 2, 1, 0]);
    }

    #[test]
    fn a_plan_has_the_load_asked_for() {
        let cli = Cli::parse_from(["worker", "selftest", "--seconds", "600"]);
        let Some(Command::Selftest(args)) = cli.command else {
            panic!("not the self-test");
        };
        let planned = plan(&args, 0.615, 0);
        let work_mi: f64 = planned.iter().map(|p| p.mi).sum();
        let span_s = planned.last().map_or(0.0, |p| p.due_ns * 1e-9);
        let load = work_mi / (span_s * 9.0 * 7450.0);
        assert!((load - 0.615).abs() < 0.01, "{load}");
    }
}

//! The systems that are simulated: few workers, one class of requests, Poisson arrivals, S = 1 s.

use super::judge::Measured;
use crate::engine::{
    self, Class, Delay, Phase, Polls, RunError, Setup, Source, Watch, WorkLeft, WorkerSetup,
};
use crate::output::student;
use crate::station::Model;
use crate::tally::{Outcome, Verdict};
use schema::laws::sizes::SizeLaw;
use std::sync::atomic::{AtomicU64, Ordering};
use strategies::Spec;
use strategies::registry::{Entry, Models};

/// Runs so far, each of which checked its invariants.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Number of simulations that were started.
pub(super) fn runs() -> u64 {
    RUNS.load(Ordering::Relaxed)
}

/// Processor-sharing workers of these cores at a load, exponential sizes of mean 1 s; the first tenth of
/// the departures is left out.
pub(super) fn pool(cores: &[f64], load: f64, requests: u64) -> Setup {
    let workers = cores.iter().enumerate().map(|(w, &cores)| WorkerSetup {
        name: format!("w{w}"),
        cores,
        speed: 1.0,
        weight: cores as u32,
        memory_gb: 1.0,
    });
    Setup {
        workers: workers.collect(),
        model: Model::Ps,
        mean_work: 1.0,
        mips_per_core: 1000.0,
        classes: vec![Class {
            id: "api".into(),
            method: "GET".into(),
            url: "/".into(),
            number: 0,
            mean_work: 1.0,
            share: 1.0,
            weight_class: 0,
        }],
        sizes: SizeLaw::Exponential,
        listed: None,
        own_targets: false,
        source: Source::Open {
            gaps: SizeLaw::Exponential,
            rate_rps: load * cores.iter().sum::<f64>(),
        },
        requests,
        polls: Polls {
            interval: 1.0,
            phase: Phase::Together,
            fetch: 0.0,
            usage: 1.0,
        },
        network: Delay::Constant(0.0),
        balancers: 1,
        ask_first: None,
        timeout: None,
        protection: None,
        faults: None,
        speed_drift: None,
        size_drift: None,
        warmup: requests / 10,
        work_left: WorkLeft::Untold,
        models: Models::default(),
        seed: 1,
    }
}

/// A strategy of the registry.
pub(super) fn spec(text: &str) -> anyhow::Result<Spec> {
    Ok(text.parse()?)
}

/// A reference strategy.
pub(super) fn reference(entry: &'static Entry) -> Spec {
    Spec::of(entry)
}

/// Simulates with somebody looking on.
pub(super) fn watched<W: Watch>(
    setup: &Setup,
    spec: &Spec,
    watch: &mut W,
) -> Result<Outcome, RunError> {
    RUNS.fetch_add(1, Ordering::Relaxed);
    engine::run(setup, spec, watch)
}

/// Simulates.
pub(super) fn simulate(setup: &Setup, spec: &Spec) -> Result<Outcome, RunError> {
    watched(setup, spec, &mut ())
}

/// Mean latency of one run with its error from batches.
///
/// # Errors
/// A broken run; one that is judged unstable, since no case here should be.
pub(super) fn measure(setup: &Setup, spec: &Spec) -> anyhow::Result<Measured> {
    let outcome = simulate(setup, spec)?;
    let is_unstable = matches!(outcome.verdict, Verdict::Unstable { .. });
    anyhow::ensure!(!is_unstable, "judged unstable at a load where it is stable");
    Ok(measured(&outcome))
}

/// The same whatever the verdict.
pub(super) fn measured(outcome: &Outcome) -> Measured {
    Measured {
        mean: outcome.mean.unwrap_or(f64::NAN),
        standard_error: outcome.standard_error.unwrap_or(f64::NAN),
    }
}

/// Means of runs with seeds 1, 2, .. that share the requests of `setup`.
pub(super) fn by_seed(setup: &Setup, spec: &Spec, seeds: u64) -> anyhow::Result<Vec<f64>> {
    let run = |seed| {
        let requests = setup.requests / seeds;
        let setup = Setup {
            seed,
            requests,
            warmup: requests / 10,
            ..setup.clone()
        };
        Ok(measure(&setup, spec)?.mean)
    };
    (1..=seeds).map(run).collect()
}

/// Mean over the seeds with its error.
pub(super) fn over_seeds(means: &[f64]) -> Measured {
    let interval = student(means);
    Measured {
        mean: interval.map_or(f64::NAN, |i| i.mean),
        standard_error: interval.map_or(f64::NAN, |i| i.standard_error),
    }
}

//! Laws of the engine that need no expected numbers: what must not change, and what must be noticed.

mod faults;
mod herding;
mod metamorphic;
mod paths;
mod polls;
mod spoiled;

pub(super) use spoiled::spoil;

use super::{
    Class, Delay, Done, Path, Phase, Polls, Setup, Source, Watch, WorkLeft, WorkerSetup, run,
    run_by,
};
use crate::station::Model;
use crate::tally::Outcome;
use schema::laws::sizes::SizeLaw;
use strategies::Spec;
use strategies::registry::Models;

/// Keeps every finished request.
#[derive(Debug, Default, PartialEq)]
struct Record(Vec<Done>);

impl Watch for Record {
    fn finished(&mut self, done: &Done) {
        self.0.push(*done);
    }
}

fn class(number: u32, mean_work: f64) -> Class {
    Class {
        id: format!("api-{number}"),
        method: "GET".into(),
        url: format!("/api/{number}"),
        number,
        mean_work,
        share: 1.0,
        weight_class: 0,
    }
}

/// Workers of 4, 3 and 2 cores, exponential sizes of mean 1 s, Poisson arrivals.
fn setup(load: f64, requests: u64) -> Setup {
    let workers = [("a", 4_u32), ("b", 3), ("c", 2)].map(|(name, cores)| WorkerSetup {
        name: name.into(),
        cores: f64::from(cores),
        speed: 1.0,
        weight: cores,
        memory_gb: 1.0,
    });
    Setup {
        workers: workers.to_vec(),
        model: Model::Ps,
        mean_work: 1.0,
        mips_per_core: 1000.0,
        classes: vec![class(0, 1.0)],
        sizes: SizeLaw::Exponential,
        listed: None,
        own_targets: false,
        source: Source::Open {
            gaps: SizeLaw::Exponential,
            rate_rps: load * 9.0,
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
        seed: 7,
    }
}

fn spec(text: &str) -> Spec {
    text.parse().expect("a strategy")
}

fn record(setup: &Setup, strategy: &str, path: Path) -> (Record, Outcome) {
    let mut record = Record::default();
    let outcome = run_by(setup, &spec(strategy), &mut record, path).expect("a run");
    (record, outcome)
}

fn outcome(setup: &Setup, strategy: &str) -> Outcome {
    run(setup, &spec(strategy), &mut ()).expect("a run")
}

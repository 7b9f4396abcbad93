//! One worker: M/M/1, processor sharing on c cores, first come first served.

use super::judge::{Line, Measured};
use super::scene::{self, measure, pool, spec};
use super::{Case, Tier};
use crate::engine::{Done, Setup, Watch};
use crate::output::student;
use crate::station::Model;
use analytic::{Worker, fcfs, worker};
use schema::laws::sizes::SizeLaw;

/// Sizes below and above are looked at apart.
const SIZE_CUT: f64 = 0.7;
const BATCHES: usize = 40;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (load, requests, tolerance) in [
        (0.5, 10_000_000, 0.01),
        (0.8, 20_000_000, 0.01),
        (0.9, 40_000_000, 0.02),
    ] {
        for (name, model) in [("PS", Model::Ps), ("FCFS", Model::Fcfs)] {
            let title = format!("M/M/1 {name}, load {load}");
            let model = model.clone();
            cases.push(Case::new("A1", title.clone(), requests, move |tier| {
                let mut setup = pool(&[1.0], load, tier.requests(requests));
                setup.model = model.clone();
                let got = measure(&setup, &spec("round-robin")?)?;
                let expected = match model {
                    Model::Fcfs => fcfs::mean_response(load, 1.0)?,
                    _ => Worker::try_new(1.0, 1.0)?.mean_response(load)?,
                };
                let line = Line::number("A1", &title, expected, got, tier.tolerance(tolerance));
                Ok(vec![line])
            }));
        }
    }
    for (name, law) in [
        ("det", SizeLaw::Constant),
        ("exp", SizeLaw::Exponential),
        ("H2(10)", SizeLaw::hyperexponential(10.0)),
    ] {
        let requests = if name == "H2(10)" {
            20_000_000
        } else {
            10_000_000
        };
        let title = format!("PS(4), load .8, {name}");
        cases.push(Case::new("A2", title.clone(), requests, move |tier| {
            let mut setup = pool(&[4.0], 0.8, tier.requests(requests));
            setup.sizes = law;
            insensitive(&title, &setup, tier)
        }));
    }
    for cores in [4_u32, 3, 2] {
        let title = format!("PS({cores}), load .9");
        cases.push(Case::new("A3", title.clone(), 40_000_000, move |tier| {
            let setup = pool(&[f64::from(cores)], 0.9, tier.requests(40_000_000));
            let got = measure(&setup, &spec("round-robin")?)?;
            let expected = worker::station_mean_response(cores, 0.9)?;
            let line = Line::number("A3", &title, expected, got, tier.tolerance(0.02));
            Ok(vec![line])
        }));
    }
    for (name, law, requests, tolerance) in [
        ("det", SizeLaw::Constant, 40_000_000, 0.005),
        ("H2(10)", SizeLaw::hyperexponential(10.0), 80_000_000, 0.02),
    ] {
        let title = format!("M/G/1 FCFS, load .8, {name}");
        cases.push(Case::new("A4", title.clone(), requests, move |tier| {
            let mut setup = pool(&[1.0], 0.8, tier.requests(requests));
            (setup.model, setup.sizes) = (Model::Fcfs, law);
            let got = measure(&setup, &spec("round-robin")?)?;
            let expected = fcfs::mean_response(0.8, law.scv())?;
            let line = Line::number("A4", &title, expected, got, tier.tolerance(tolerance));
            Ok(vec![line])
        }));
    }
    cases
}

/// The mean is that of exponential sizes, and so is the time per unit of size, of small and of large
/// requests apart.
fn insensitive(title: &str, setup: &Setup, tier: Tier) -> anyhow::Result<Vec<Line>> {
    let expected = worker::station_mean_response(4, 0.8)?;
    let mut by_size = BySize::new(setup);
    let outcome = scene::watched(setup, &spec("round-robin")?, &mut by_size)?;
    let tolerance = tier.tolerance(0.01);
    let line =
        |what: &str, got| Line::number("A2", format!("{title}{what}"), expected, got, tolerance);
    let mut lines = vec![line("", scene::measured(&outcome))];
    if setup.sizes != SizeLaw::Constant {
        lines.push(line(", time/size of sizes < .7", ratio(&by_size.small)));
        lines.push(line(", time/size of sizes >= .7", ratio(&by_size.large)));
    }
    Ok(lines)
}

/// Sums of latency and size, in batches.
struct BySize {
    per_batch: u64,
    seen: u64,
    small: [(f64, f64); BATCHES],
    large: [(f64, f64); BATCHES],
}

impl BySize {
    fn new(setup: &Setup) -> Self {
        Self {
            per_batch: (setup.requests - setup.warmup).div_ceil(BATCHES as u64),
            seen: 0,
            small: [(0.0, 0.0); BATCHES],
            large: [(0.0, 0.0); BATCHES],
        }
    }
}

impl Watch for BySize {
    fn finished(&mut self, done: &Done) {
        if done.warmup {
            return;
        }
        let batch = (self.seen / self.per_batch) as usize;
        self.seen += 1;
        let sums = if done.work < SIZE_CUT {
            &mut self.small[batch]
        } else {
            &mut self.large[batch]
        };
        sums.0 += done.finished - done.arrived;
        sums.1 += done.work;
    }
}

/// The ratio of two sums with the error of a ratio: that of the mean of time - ratio*size over the
/// batches, per mean size.
fn ratio(batches: &[(f64, f64)]) -> Measured {
    let (time, size) = batches
        .iter()
        .fold((0.0, 0.0), |s, b| (s.0 + b.0, s.1 + b.1));
    let mean = time / size;
    let off: Vec<f64> = batches.iter().map(|b| b.0 - mean * b.1).collect();
    let error = student(&off).map_or(f64::NAN, |i| i.standard_error);
    Measured {
        mean,
        standard_error: error / (size / batches.len() as f64),
    }
}

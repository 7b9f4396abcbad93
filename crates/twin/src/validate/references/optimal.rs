//! The best strategy there is for 4/3/2 cores with exponential sizes and live counts: the worker after
//! which the relative value of the state is least, from the Markov chain. Outside the chain's box, which
//! is practically never reached: least (n+1)/c.

use super::{entry, least};
use analytic::Worker;
use analytic::chain::{Chain, Rule, Solution};
use std::sync::OnceLock;
use strategies::registry::{Entry, Read};
use strategies::strategy::Rng;
use strategies::{Backend, BackendId, Backends, Request, Strategy, Time};

const CORES: [f64; 3] = [4.0, 3.0, 2.0];
/// Values this close, in requests times S, are ties.
const TIE: f64 = 1e-8;

/// Load in percent, and a box beyond which nothing changes a digit that is shown.
const BOXES: [(u32, [f64; 3]); 4] = [
    (50, [26.0, 22.0, 18.0]),
    (70, [36.0, 30.0, 24.0]),
    (80, [48.0, 40.0, 32.0]),
    (90, [84.0, 68.0, 52.0]),
];

static SOLUTIONS: [OnceLock<Solution>; BOXES.len()] = [const { OnceLock::new() }; BOXES.len()];

static ENTRIES: [Entry; BOXES.len()] = [
    of::<0>("optimal-at-50"),
    of::<1>("optimal-at-70"),
    of::<2>("optimal-at-80"),
    of::<3>("optimal-at-90"),
];

const fn of<const AT: usize>(name: &'static str) -> Entry {
    entry(name, &[Read::InFlight], |_, _| {
        Box::new(Optimal {
            at: AT,
            counts: Vec::new(),
        })
    })
}

/// The strategy for a load of .5, .7, .8 or .9.
pub(in crate::validate) fn entry_at(load: f64) -> anyhow::Result<&'static Entry> {
    // Solving may fail, building a strategy may not.
    solution(load)?;
    Ok(&ENTRIES[place(load)?])
}

/// The chain of a load of .5, .7, .8 or .9.
pub(in crate::validate) fn chain(load: f64) -> anyhow::Result<Chain> {
    let (_, edges) = BOXES[place(load)?];
    let workers = CORES.map(|c| Worker::try_new(c, 1.0));
    let workers: Vec<Worker> = workers.into_iter().collect::<Result<_, _>>()?;
    let capacity: f64 = CORES.iter().sum();
    Ok(Chain::with_box(&workers, load * capacity, &edges)?)
}

/// Its best strategy, solved once.
pub(in crate::validate) fn solution(load: f64) -> anyhow::Result<&'static Solution> {
    let cell = &SOLUTIONS[place(load)?];
    if let Some(solution) = cell.get() {
        return Ok(solution);
    }
    let solution = chain(load)?.solve(&Rule::Optimal)?;
    Ok(cell.get_or_init(|| solution))
}

fn place(load: f64) -> anyhow::Result<usize> {
    let percent = (load * 100.0).round() as u32;
    let place = BOXES.iter().position(|(known, _)| *known == percent);
    place.ok_or_else(|| anyhow::anyhow!("no box for a load of {load}; known: .5, .7, .8, .9"))
}

#[derive(Debug, Clone)]
struct Optimal {
    at: usize,
    counts: Vec<u32>,
}

impl Strategy for Optimal {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        self.counts.clear();
        self.counts.extend(backends.eligible().map(|b| b.in_flight));
        let values = SOLUTIONS[self.at].get().map(|s| &s.values);
        let after = |b: &Backend| values.and_then(|v| v.after(&self.counts, b.id.index()));
        if backends.eligible().all(|b| after(b).is_some()) {
            return least(backends, rng, TIE, |b| after(b).unwrap_or(f64::INFINITY));
        }
        least(backends, rng, 0.0, |b| {
            (f64::from(b.in_flight) + 1.0) / b.cores
        })
    }
}

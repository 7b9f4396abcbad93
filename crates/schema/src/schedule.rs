//! The schedule of a workload: which API is called when, expanded from the seed or as listed.
//!
//! A pure function of the workload: every program that replays or models it, on every machine, sees
//! the same due times, APIs and sizes. The laws are those of [`crate::laws`]; request `i` takes draw
//! `i` of the streams of arrivals and sizes, so that two workloads of one seed differ only in what
//! their files differ in.

use crate::laws::sizes::{SizeLaw, noisy_mi};
use crate::rng::{Purpose, shuffle, stream};
use crate::workload::{Drawn, Order, Traffic, Workload};

/// Entity of the stream that the sizes of requests are drawn from; a generator draws those of the
/// APIs from entity 0.
const REQUEST_SIZES: u32 = 1;

/// One request of a schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Due {
    /// When it is due, ns after time 0.
    pub intended_ns: u64,
    /// Index into the workload's APIs.
    pub api: u32,
    /// Work, in millions of instructions.
    pub task_size_mi: f64,
}

/// Expands `workload`; the place of a request in the result is its sequence number and due times do
/// not decrease.
pub fn expand(workload: &Workload) -> Vec<Due> {
    match &workload.traffic {
        Traffic::Drawn(drawn) => expand_drawn(workload, drawn),
        Traffic::Listed(requests) => requests
            .iter()
            .map(|request| Due {
                intended_ns: request.at_us * 1000,
                api: request.api,
                task_size_mi: request.task_size_mi,
            })
            .collect(),
    }
}

fn expand_drawn(workload: &Workload, drawn: &Drawn) -> Vec<Due> {
    let arrivals = stream(workload.seed, Purpose::Arrivals, 0, 0);
    let mut sizes = stream(workload.seed, Purpose::Sizes, REQUEST_SIZES, 0);
    let noise = SizeLaw::log_normal(drawn.size_cv);
    calls(workload, drawn)
        .into_iter()
        .zip(drawn.arrivals.times(arrivals))
        .map(|(api, due_ns)| {
            let mean_mi = workload.apis[api as usize].task_size_mi;
            let task_size_mi = match drawn.size_cv {
                0.0 => mean_mi,
                _ => noisy_mi(mean_mi, &noise, &mut sizes),
            };
            Due {
                intended_ns: due_ns.round() as u64,
                api,
                task_size_mi,
            }
        })
        .collect()
}

/// `intended_ns` of a replay at `speed` times the original rate.
///
/// # Panics
/// If `speed` is not positive and finite.
pub fn at_speed(intended_ns: u64, speed: f64) -> u64 {
    assert!(speed > 0.0 && speed.is_finite(), "speed must be positive");
    (intended_ns as f64 / speed).round() as u64
}

/// Mean gap between due times, ns; of fewer than two requests there is none.
pub fn mean_gap_ns(schedule: &[Due]) -> Option<f64> {
    let (first, last) = (schedule.first()?, schedule.last()?);
    let gaps = schedule.len() - 1;
    (gaps > 0).then(|| (last.intended_ns - first.intended_ns) as f64 / gaps as f64)
}

/// The API of each request.
fn calls(workload: &Workload, drawn: &Drawn) -> Vec<u32> {
    let apis = 0..workload.apis.len() as u32;
    let runs = drawn.runs;
    match drawn.order {
        Order::Sequential => apis
            .flat_map(|api| std::iter::repeat_n(api, runs as usize))
            .collect(),
        Order::Round => (0..runs).flat_map(|_| apis.clone()).collect(),
        Order::Shuffled => {
            let mut calls: Vec<u32> = (0..runs).flat_map(|_| apis.clone()).collect();
            let mut rng = stream(workload.seed, Purpose::ApiChoice, 0, 0);
            shuffle(&mut rng, &mut calls);
            calls
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

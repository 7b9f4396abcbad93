//! Rebuilt work against stations and the engine, prices against running it, verdicts by hand.

mod engine;
mod price;
mod stations;
mod verdicts;

use super::rebuild::{Stay, Worker};

fn worker(name: &str, cores: f64, speed: f64) -> Worker {
    let name = name.into();
    Worker { name, cores, speed }
}

/// A judged stay of which the worker told.
fn stay(worker: usize, work_ms: f64, picked_ms: f64, started_ms: f64, ended_ms: f64) -> Stay {
    Stay {
        worker,
        work_ms,
        picked_ms,
        arrived_ms: picked_ms,
        started_ms,
        ended_ms,
        told: true,
        judged: true,
    }
}

fn sorted(mut list: Vec<f64>) -> Vec<f64> {
    list.sort_by(f64::total_cmp);
    list
}

//! The schedule of a workload: which API is called when, expanded from the seed.
//!
//! A pure function of the workload: every program that replays or models it, on every machine, sees
//! the same due times, APIs and sizes. Logarithms are portable ones, see [`crate::rng`].

use crate::rng::{Purpose, exponential, shuffle, stream};
use crate::workload::{Arrivals, Order, Workload};

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

/// Expands `workload`; the place of a request in the result is its sequence number.
pub fn expand(workload: &Workload) -> Vec<Due> {
    let due_ns = due_times_ns(&workload.arrivals, workload.seed, workload.requests());
    calls(workload)
        .into_iter()
        .zip(due_ns)
        .map(|(api, intended_ns)| Due {
            intended_ns,
            api,
            task_size_mi: workload.apis[api as usize].task_size_mi,
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
fn calls(workload: &Workload) -> Vec<u32> {
    let apis = 0..workload.apis.len() as u32;
    let runs = workload.runs;
    match workload.order {
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

/// Due times in order: a pure function of process, seed and index.
fn due_times_ns(arrivals: &Arrivals, seed: u64, requests: u64) -> Vec<u64> {
    match *arrivals {
        Arrivals::Constant { interval_ms } => (0..requests)
            .map(|i| (i as f64 * interval_ms * 1e6).round() as u64)
            .collect(),
        Arrivals::Poisson { rate_rps } => {
            let mut rng = stream(seed, Purpose::Arrivals, 0, 0);
            let mut now_ns = 0.0;
            (0..requests)
                .map(|_| {
                    now_ns += exponential(&mut rng) * 1e9 / rate_rps;
                    now_ns.round() as u64
                })
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{at_speed, expand, mean_gap_ns};
    use crate::workload::{Api, Arrivals, Method, Order, Workload};

    fn workload(order: Order, arrivals: Arrivals) -> Workload {
        let api = |n: u32| Api {
            id: format!("api-{n}"),
            method: Method::Get,
            url: format!("/a/{n}"),
            task_size_mi: f64::from(n),
        };
        Workload {
            name: "t".into(),
            seed: 7,
            generator: serde_json::Map::new(),
            apis: (1..=3).map(api).collect(),
            runs: 1000,
            order,
            arrivals,
            sha256: String::new(),
        }
    }

    const EVERY_10_MS: Arrivals = Arrivals::Constant { interval_ms: 10.0 };

    #[test]
    fn orders_differ_and_each_calls_every_api_equally_often() {
        let apis = |order| -> Vec<u32> {
            let schedule = expand(&workload(order, EVERY_10_MS));
            schedule.iter().map(|d| d.api).collect()
        };
        assert_eq!(apis(Order::Round)[..5], [0, 1, 2, 0, 1]);
        assert_eq!(apis(Order::Sequential)[998..1002], [0, 0, 1, 1]);
        let shuffled = apis(Order::Shuffled);
        assert_ne!(shuffled, apis(Order::Round));
        for api in 0..3 {
            assert_eq!(shuffled.iter().filter(|a| **a == api).count(), 1000);
        }
    }

    #[test]
    fn constant_gaps_start_at_time_zero() {
        let schedule = expand(&workload(Order::Round, EVERY_10_MS));
        let due: Vec<u64> = schedule.iter().take(3).map(|d| d.intended_ns).collect();
        assert_eq!(due, [0, 10_000_000, 20_000_000]);
        assert_eq!(mean_gap_ns(&schedule), Some(10e6));
        assert_eq!(at_speed(10_000_000, 2.0), 5_000_000);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_an_exponential_law() {
        let schedule = expand(&workload(
            Order::Shuffled,
            Arrivals::Poisson { rate_rps: 100.0 },
        ));
        let due: Vec<f64> = schedule.iter().map(|d| d.intended_ns as f64).collect();
        let gaps: Vec<f64> = due.windows(2).map(|w| w[1] - w[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Four standard errors of 3,000 draws.
        assert!((mean / 10e6 - 1.0).abs() < 0.073, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.073, "{variance}");
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule_and_it_is_this_one() {
        let poisson = Arrivals::Poisson { rate_rps: 100.0 };
        let schedule = expand(&workload(Order::Shuffled, poisson));
        assert_eq!(schedule, expand(&workload(Order::Shuffled, poisson)));
        let first: Vec<(u64, u32)> = schedule
            .iter()
            .take(4)
            .map(|d| (d.intended_ns, d.api))
            .collect();
        insta::assert_debug_snapshot!(first);
    }
}

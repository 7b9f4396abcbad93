//! The price of a placement is what the stations show when they run empty with and without it.

use crate::station::{Fcfs, Model, Ps, Shape, Station};
use proptest::prelude::*;
use strategies::work_left::Price;

/// When each of these jobs, all there at time 0, leaves; s.
fn departures<S: Station>(mut station: S, work: &[f64]) -> Vec<f64> {
    for (job, work) in work.iter().enumerate() {
        station.arrive(0.0, job as u32, *work, 0);
    }
    let mut left = vec![0.0; work.len()];
    while station.present() > 0 {
        let at = station.next();
        if let Some(departure) = station.step(at) {
            left[departure.job as usize] = at;
        }
    }
    left
}

fn run_empty(cores: f64, speed: f64, in_order: bool, work: &[f64]) -> Vec<f64> {
    let shape = Shape {
        cores,
        speed,
        mean_work: 1.0,
        model: if in_order { Model::Fcfs } else { Model::Ps },
    };
    match in_order {
        true => departures(Fcfs::new(&shape), work),
        false => departures(Ps::new(&shape), work),
    }
}

proptest! {
    #[test]
    fn own_time_and_delay_are_what_running_shows(
        cores in prop_oneof![Just(0.4), Just(1.0), Just(3.0), 0.1_f64..6.0],
        speed in 0.2..3.0_f64,
        size in 0.01..2.0_f64,
        left in prop::collection::vec(0.01..2.0_f64, 0..20),
        in_order: bool,
    ) {
        let cost = Price::new(cores, in_order).cost(size, left.iter().copied());
        let without = run_empty(cores, speed, in_order, &left);
        let with = run_empty(cores, speed, in_order, &[&left[..], &[size]].concat());
        let own = with[left.len()];
        let others: f64 = with.iter().zip(&without).map(|(w, o)| w - o).sum();
        prop_assert!((cost.own_ms / speed - own).abs() < 1e-9 * (1.0 + own));
        prop_assert!((cost.others_ms / speed - others).abs() < 1e-8 * (1.0 + others));
    }
}

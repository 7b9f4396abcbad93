//! The work left as rebuilt from arrivals and departures is what the station that made them had left.

use super::super::rebuild::{Discipline, Stay, World};
use super::{sorted, stay, worker};
use crate::station::{Departure, Fcfs, Model, Ps, Shape, Station};
use proptest::prelude::*;

/// What a station had left at every arrival, and its stays.
fn watched<S: Station>(mut station: S, arrivals: &[(f64, f64)]) -> (Vec<Vec<f64>>, Vec<Stay>) {
    let mut stays: Vec<Stay> = Vec::new();
    let mut left_by_pick = Vec::new();
    let mut now = 0.0;
    let out = |stays: &mut Vec<Stay>, at: f64, left: Departure| {
        let stay = &mut stays[left.job as usize];
        stay.ended_ms = at * 1e3;
        stay.started_ms = left.started.map_or(stay.arrived_ms, |s| s * 1e3);
    };
    for (gap, work) in arrivals {
        now += gap;
        while station.next() <= now {
            let at = station.next();
            let left = station.step(at).expect("somebody leaves");
            out(&mut stays, at, left);
        }
        let mut left = Vec::new();
        station.left(now, &mut |_, work| left.push(work * 1e3));
        left_by_pick.push(sorted(left));
        station.arrive(now, stays.len() as u32, *work, 0);
        stays.push(stay(0, work * 1e3, now * 1e3, f64::NAN, f64::NAN));
    }
    while station.present() > 0 {
        let at = station.next();
        let left = station.step(at).expect("somebody leaves");
        out(&mut stays, at, left);
    }
    (left_by_pick, stays)
}

fn check(cores: f64, speed: f64, discipline: Discipline, arrivals: &[(f64, f64)]) {
    let model = match discipline {
        Discipline::Sharing => Model::Ps,
        Discipline::InOrder => Model::Fcfs,
    };
    let shape = Shape {
        cores,
        speed,
        mean_work: 1.0,
        model,
    };
    let (expected, stays) = match discipline {
        Discipline::Sharing => watched(Ps::new(&shape), arrivals),
        Discipline::InOrder => watched(Fcfs::new(&shape), arrivals),
    };
    let stated = worker("a", cores, speed);
    let mut world = World::new(std::slice::from_ref(&stated), discipline, &stays);
    for (at, expected) in expected.iter().enumerate() {
        world.advance_to(at);
        let left = sorted(world.left_ms(0).filter(|l| *l > 1e-6).collect());
        let expected: Vec<f64> = expected.iter().copied().filter(|l| *l > 1e-6).collect();
        assert_eq!(left.len(), expected.len(), "{left:?} {expected:?}");
        for (rebuilt, true_left) in left.iter().zip(&expected) {
            assert!((rebuilt - true_left).abs() < 2e-6, "{left:?} {expected:?}");
        }
        world.place(at);
    }
    let speed = world.measured_speed(0, &stated).expect("it worked");
    assert!((speed - 1.0).abs() < 1e-6, "{speed}");
}

proptest! {
    #[test]
    fn the_rebuilt_work_is_what_the_station_had_left(
        arrivals in prop::collection::vec((0.0..0.6_f64, 0.01..2.0_f64), 1..60),
        cores in prop_oneof![Just(1.0), Just(4.0), 0.2_f64..5.0],
        speed in prop_oneof![Just(1.0), 0.3_f64..2.0],
        in_order: bool,
    ) {
        let discipline = if in_order { Discipline::InOrder } else { Discipline::Sharing };
        check(cores, speed, discipline, &arrivals);
    }
}

#[test]
fn a_request_on_its_way_or_waiting_has_all_its_work_left() {
    // Reaches the worker at 5, waits until 10, ends at 30.
    let mut first = stay(0, 20.0, 0.0, 10.0, 30.0);
    first.arrived_ms = 5.0;
    let later = |at| stay(0, 1.0, at, at, at + 1.0);
    let stays = [first, later(2.0), later(7.0), later(15.0), later(30.0)];
    let workers = [worker("a", 1.0, 1.0)];
    let mut world = World::new(&workers, Discipline::InOrder, &stays);
    let mut seen = Vec::new();
    for at in 0..stays.len() {
        world.advance_to(at);
        seen.push(world.left_ms(0).collect::<Vec<_>>());
        if at == 0 {
            world.place(at);
        }
    }
    assert_eq!(seen, [vec![], vec![20.0], vec![20.0], vec![15.0], vec![]]);
}

#[test]
fn a_request_whose_end_nobody_told_attains_at_nominal_speed_until_its_outcome() {
    // Alone on a core of speed 1/2 for 10 ms, then given up.
    let mut failed = stay(0, 20.0, 0.0, 0.0, 10.0);
    failed.told = false;
    let stays = [
        failed,
        stay(0, 2.0, 6.0, 6.0, 14.0),
        stay(0, 2.0, 10.0, 10.0, 20.0),
    ];
    let workers = [worker("a", 1.0, 0.5)];
    let mut world = World::new(&workers, Discipline::Sharing, &stays);
    world.advance_to(0);
    world.place(0);
    world.advance_to(1);
    assert_eq!(world.left_ms(0).collect::<Vec<_>>(), [17.0]);
    world.advance_to(2);
    assert_eq!(world.left_ms(0).count(), 0);
}

//! Worlds against the exact price and against steps of time.

use super::{Coming, Depth, Needs, Placing, Rule, Worlds};
use crate::registry::Spec;
use crate::values::BackendId;
use crate::work_left::left::Left;
use crate::work_left::placing::Place;
use crate::work_left::price::Price;
use proptest::prelude::*;
use schema::rng::{Purpose, stream};

const FOREVER: f64 = f64::INFINITY;

fn rule(spec: &str, spread: f64) -> Rule {
    let spec: Spec = spec.parse().unwrap();
    let needs = Needs {
        typical_ms: 10.0,
        spread,
    };
    Rule {
        placing: Placing::new(&spec),
        needs,
    }
}

fn told(expected_ms: f64) -> Left {
    Left {
        expected_ms,
        floor_ms: 0.0,
        drawn: None,
    }
}

fn worlds(worlds: usize, ahead: usize, errors: f64) -> Worlds {
    Worlds::new(Depth {
        worlds,
        ahead,
        errors,
    })
}

fn add(worlds: &mut Worlds, price: &Price, speed: f64, left_ms: &[f64]) {
    let id = BackendId(worlds.count as u32);
    let place = Place {
        cores: price.cores(),
        speed,
        present: left_ms.len() as f64,
        pressure: 0.0,
    };
    worlds.add(id, place, price, left_ms.iter().map(|ms| told(*ms)));
}

/// The time that requests spend at one backend, one after the other in order of their ends, by stepping
/// from event to event: `(arrives, needs)`, in order of arrival.
fn stepped(cores: f64, in_order: bool, speed: f64, requests: &[(f64, f64)]) -> f64 {
    let mut left: Vec<f64> = requests.iter().map(|(_, need)| *need).collect();
    let (mut now, mut spent) = (0.0, 0.0);
    let done = |left: f64| left < 1e-9;
    while !left.iter().all(|l| done(*l)) {
        let present: Vec<usize> = (0..left.len())
            .filter(|i| requests[*i].0 <= now && !done(left[*i]))
            .collect();
        let servers = if in_order {
            cores.round().max(1.0)
        } else {
            FOREVER
        };
        let running = present.len().min(servers as usize);
        let share = if in_order {
            servers
        } else {
            running.max(1) as f64
        };
        let rate = speed * (cores / share).min(1.0);
        let arrival = requests.iter().map(|(at, _)| *at).filter(|at| *at > now);
        let arrival = arrival.fold(FOREVER, f64::min);
        let running = &present[..running];
        let least = running.iter().map(|i| left[*i]).fold(FOREVER, f64::min);
        let step = (least / rate).min(arrival - now);
        for i in running {
            left[*i] -= step * rate;
        }
        spent += step * present.len() as f64;
        now += step;
    }
    spent
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    /// With nobody to come, a choice costs what the exact price says.
    #[test]
    fn without_arrivals_it_is_the_price(
        cores in prop::sample::select(vec![0.4, 0.8, 1.0, 2.0, 2.5, 4.0]),
        in_order in any::<bool>(),
        speed in 0.2..1.0_f64,
        size in 0.1..50.0_f64,
        left in prop::collection::vec(0.1..50.0_f64, 0..9),
        other in prop::collection::vec(0.1..50.0_f64, 0..9),
    ) {
        let price = Price::new(cores, in_order);
        let mut worlds = worlds(1, 0, 0.0);
        add(&mut worlds, &price, speed, &left);
        add(&mut worlds, &Price::new(1.5, in_order), 1.0, &other);
        let rule = rule("wl-mc", 0.0);
        let mut rng = stream(1, Purpose::Strategy, 0, 0);
        worlds.draw(0, 0.0, &|_| unreachable!(), &mut rng);
        let with = worlds.play(0, super::Piece::new(size, size, 0.0), rule);
        let alone = |cores, speed, left: &[f64]| {
            let requests: Vec<_> = left.iter().map(|ms| (0.0, *ms)).collect();
            stepped(cores, in_order, speed, &requests)
        };
        let without = alone(cores, speed, &left) + alone(1.5, 1.0, &other);
        let cost = price.clone().cost(size, left.iter().copied());
        let wanted = (cost.own_ms + cost.others_ms) / speed;
        prop_assert!(close(with - without, wanted), "{} {wanted}", with - without);
    }

    /// One backend, so that every arrival goes there: what is played is what steps of time show.
    #[test]
    fn a_world_is_played_as_steps_of_time_show(
        cores in prop::sample::select(vec![0.4, 1.0, 2.0, 4.0]),
        in_order in any::<bool>(),
        speed in 0.2..1.0_f64,
        left in prop::collection::vec(0.1..50.0_f64, 0..6),
        size in 0.1..50.0_f64,
        coming in prop::collection::vec((0.01..40.0_f64, 0.1..50.0_f64), 0..12),
    ) {
        let mut worlds = worlds(1, coming.len(), 0.0);
        add(&mut worlds, &Price::new(cores, in_order), speed, &left);
        let rule = rule("wl-mc", 0.0);
        let mut rng = stream(1, Purpose::Strategy, 0, 0);
        let turn = std::cell::Cell::new(0);
        let next = |_: &mut crate::strategy::Rng| {
            let (gap_ms, mean_ms) = coming[turn.replace(turn.get() + 1)];
            Coming { gap_ms, mean_ms }
        };
        worlds.draw(coming.len(), 0.0, &next, &mut rng);
        let played = worlds.play(0, super::Piece::new(size, size, 0.0), rule);
        let mut requests: Vec<(f64, f64)> = left.iter().map(|ms| (0.0, *ms)).collect();
        requests.push((0.0, size));
        let mut at = 0.0;
        for (gap, need) in &coming {
            at += gap;
            requests.push((at, *need));
        }
        let wanted = stepped(cores, in_order, speed, &requests);
        prop_assert!(close(played, wanted), "{played} {wanted}");
    }
}

/// A core and half a core, both idle; a request of 1 core-ms, and right behind it one of 10. The rule
/// gives the first the whole core, where the other then shares it: 2 + 11 ms. Half a core would take 2
/// and leave the whole one to the other: 2 + 10.
fn small_before_large(errors: f64, ahead: usize) -> BackendId {
    let mut worlds = worlds(20, ahead, errors);
    add(&mut worlds, &Price::new(1.0, false), 1.0, &[]);
    add(&mut worlds, &Price::new(0.5, false), 1.0, &[]);
    let large = |_: &mut crate::strategy::Rng| Coming {
        gap_ms: 0.0,
        mean_ms: 10.0,
    };
    let mut rng = stream(1, Purpose::Strategy, 0, 0);
    let rivals = std::iter::once(BackendId(1));
    worlds.choose(
        rule("wl-mc", 0.0),
        BackendId(0),
        rivals,
        1.0,
        large,
        &mut rng,
    )
}

#[test]
fn a_small_request_makes_room_for_a_large_one_to_come() {
    assert_eq!(small_before_large(2.0, 1), BackendId(1));
    assert_eq!(small_before_large(2.0, 0), BackendId(0));
}

/// Two equal backends: which is better is chance alone, and the usual choice stands.
#[test]
fn chance_does_not_move_it() {
    let mut rng = stream(1, Purpose::Strategy, 0, 0);
    let next = |rng: &mut crate::strategy::Rng| Coming {
        gap_ms: 10.0 * schema::rng::exponential(rng),
        mean_ms: 10.0,
    };
    let mut moved = 0;
    for _ in 0..200 {
        let mut worlds = worlds(40, 6, 3.0);
        add(&mut worlds, &Price::new(1.0, false), 1.0, &[4.0]);
        add(&mut worlds, &Price::new(1.0, false), 1.0, &[4.0]);
        let (rule, rivals) = (rule("wl-mc", 0.5), std::iter::once(BackendId(1)));
        let chosen = worlds.choose(rule, BackendId(0), rivals, 10.0, next, &mut rng);
        moved += u32::from(chosen != BackendId(0));
    }
    // One in 740 beyond three standard errors on one side.
    assert!(moved <= 4, "{moved}");
}

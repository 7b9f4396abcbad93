//! T1 bursts, T2 everyone starts at the same backend, T3 uneven round robin, T5 weights lost, T10
//! weights ignored on an idle pool.

use super::ROTATIONS;
use crate::tests::models::options;
use crate::tests::pools::{answered_pick, dispatcher, letter, members, sequence, shares, spec};
use crate::{BackendId, Dispatcher, Request, Time};
use std::sync::{Arc, Barrier, Mutex};

const NAMES: [char; 3] = ['A', 'B', 'C'];

fn counts(picks: &str) -> [i64; 3] {
    NAMES.map(|name| picks.matches(name).count() as i64)
}

fn longest_streak(picks: &str) -> usize {
    let picks: Vec<char> = picks.chars().collect();
    picks
        .chunk_by(|a, b| a == b)
        .map(<[char]>::len)
        .max()
        .unwrap_or(0)
}

/// Furthest that any backend ever was from its share of the picks so far.
fn largest_deviation(picks: &str, weights: [i64; 3]) -> f64 {
    let sum: i64 = weights.iter().sum();
    let mut largest = 0.0_f64;
    for k in 1..=picks.len() {
        for (count, weight) in counts(&picks[..k]).into_iter().zip(weights) {
            let share = (k as i64 * weight) as f64 / sum as f64;
            largest = largest.max((count as f64 - share).abs());
        }
    }
    largest
}

#[test]
fn t1_bursts() {
    for text in &ROTATIONS[1..] {
        let mut d = dispatcher(&spec(text), &[4, 3, 2], 1);
        let picks = sequence(&mut d, 9000);
        assert_eq!(counts(&picks[..9]), [4, 3, 2], "{text}");
        assert_eq!(counts(&picks), [4000, 3000, 2000], "{text}");
        assert!(longest_streak(&picks[..90]) <= 2, "{text}: {picks}");
        assert!(largest_deviation(&picks[..90], [4, 3, 2]) <= 1.0, "{text}");
    }
    let blocks = spec("weighted-round-robin");
    let picks = sequence(&mut dispatcher(&blocks, &[4, 3, 2], 1), 90);
    assert_eq!(longest_streak(&picks), 4);
    // After the four A: 4 - 4 * 4/9.
    let deviation = largest_deviation(&picks, [4, 3, 2]);
    assert!((deviation - 20.0 / 9.0).abs() < 1e-9, "{deviation}");
    let summary = blocks.entry().summary;
    assert!(summary.contains("streak 4") && summary.contains("2.2 off"));
}

#[test]
fn t2_everyone_starts_at_the_same_backend() {
    let first_picks = |text: &str, weights: &[u32]| {
        let mut shares = [0.0; 3];
        for seed in 0..1000 {
            let first = sequence(&mut dispatcher(&spec(text), weights, seed), 1);
            shares[NAMES.iter().position(|c| first.starts_with(*c)).unwrap()] += 0.1;
        }
        shares
    };
    let near = |shares: [f64; 3], expected: [(f64, f64); 3]| {
        let mut pairs = shares.into_iter().zip(expected);
        pairs.all(|(share, (mean, within))| (share - mean).abs() <= within)
    };
    for text in ROTATIONS {
        let shares = first_picks(&format!("{text}:start=random"), &[4, 3, 2]);
        let expected = [(44.4, 4.7), (33.3, 4.5), (22.2, 3.9)];
        assert!(near(shares, expected), "{text}: {shares:?}");
        assert_eq!(first_picks(text, &[4, 3, 2]), first_picks(text, &[4, 3, 2]));
    }
    let shares = first_picks("round-robin:start=random", &[4, 3, 2]);
    assert!(near(shares, [(33.3, 4.5); 3]), "{shares:?}");
}

#[test]
fn t2_a_pool_set_again_keeps_its_state() {
    for text in ROTATIONS {
        let mut d = dispatcher(&spec(text), &[99, 1], 1);
        let mut light = 0;
        for _ in 0..200 {
            light += shares(&mut d, 50)[1];
            for (id, weight) in [(0, 99), (1, 1)] {
                d.set_weight(d.now(), BackendId(id), weight).unwrap();
            }
        }
        assert!((99..=101).contains(&light), "{text}: {light}");
        let anew = format!("{text}:start=random");
        let light: u64 = (0..2000)
            .map(|seed| shares(&mut dispatcher(&spec(&anew), &[99, 1], seed), 50)[1])
            .sum();
        assert!((700..=1300).contains(&light), "{anew}: {light} of 100000");
    }
}

#[test]
fn t3_uneven_round_robin() {
    for round in 0..50 {
        let shared = Arc::new(Mutex::new(dispatcher(&spec("round-robin"), &[1; 3], round)));
        let together = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    together.wait();
                    for _ in 0..3 {
                        let _ = shared.lock().unwrap().pick(Time::ZERO, &Request::default());
                    }
                });
            }
        });
        let d = shared.lock().unwrap();
        assert!(d.backends().members().all(|b| b.sent == 4), "round {round}");
    }
}

/// Picks of a pool of 4/3/2 after B was away for some, and of a pool that became 4/3/2 live.
fn nine_hundred_after(text: &str, seed: u64, before: usize, away: usize) -> [String; 2] {
    let mut returned = dispatcher(&spec(text), &[4, 3, 2], seed);
    sequence(&mut returned, before);
    let until = returned.now().plus_ns(away as u64 * 1_000_000 + 500_000);
    returned.eject(returned.now(), BackendId(1), until).unwrap();
    let without = sequence(&mut returned, away);
    assert!(!without.contains('B'), "{text}: {without}");

    let mut changed = dispatcher(&spec(text), &[1, 1, 1], seed + 1000);
    sequence(&mut changed, before + away);
    for (id, weight) in [(0, 4), (1, 3), (2, 2)] {
        changed
            .set_weight(changed.now(), BackendId(id), weight)
            .unwrap();
    }
    [returned, changed].map(|mut d| sequence(&mut d, 900))
}

const BEFORE: [usize; 5] = [0, 1, 5, 100, 777];
const AWAY: [usize; 4] = [1, 7, 50, 901];

#[test]
fn t5_weights_lost_after_recovery_or_a_live_change() {
    for text in ROTATIONS {
        // As many of B in a row as in the usual order: no burst to catch up.
        let usual = if *text == "weighted-round-robin" {
            3
        } else {
            2
        };
        for (before, away) in BEFORE.into_iter().flat_map(|b| AWAY.map(|a| (b, a))) {
            for picks in nine_hundred_after(text, 1, before, away) {
                let off = |i: usize| (counts(&picks)[i] - [400, 300, 200][i]).abs();
                let context = format!("{text} after {before}, {away}: {:?}", counts(&picks));
                assert!((0..3).all(|i| off(i) <= 2), "{context}");
                let of_b = picks.split(|c| c != 'B').map(str::len).max();
                assert!(of_b <= Some(usual), "{context}: {of_b:?} B in a row");
            }
        }
    }
}

#[test]
fn t5_random_by_weight_keeps_its_shares_too() {
    let mut sums = [[0; 3]; 2];
    let mut runs = 0.0;
    for (before, away) in BEFORE.into_iter().flat_map(|b| AWAY.map(|a| (b, a))) {
        let both = nine_hundred_after("weighted-random", runs as u64, before, away);
        for (sum, picks) in sums.iter_mut().zip(both) {
            (0..3).for_each(|i| sum[i] += counts(&picks)[i]);
        }
        runs += 1.0;
    }
    // Three binomial standard deviations: 45, 42 and 37 of 900.
    for sum in sums {
        for (count, (mean, within)) in
            sum.into_iter()
                .zip([(400.0, 45.0), (300.0, 42.0), (200.0, 37.0)])
        {
            let off = (count as f64 - runs * mean).abs();
            assert!(off <= within * f64::sqrt(runs), "{sums:?}");
        }
    }
}

#[test]
fn t10_weights_ignored_on_an_idle_pool() {
    let (rule, pool) = (spec("weighted-least-request"), members(&[4, 3, 2]));
    for seed in 0..10_000 {
        let options = crate::Options { seed, ..options() };
        let mut d = Dispatcher::new(&rule, &pool, options).unwrap();
        assert_eq!(letter(answered_pick(&mut d, &Request::default())), 'A');
    }
}

//! T16 slow start that starves, T17 slow start only after failures.

use super::ROTATIONS;
use crate::ejection::Phase;
use crate::tests::models::options;
use crate::tests::pools::members;
use crate::tests::rig::{Fate, MS, Rig, SECOND};
use crate::{BackendId, NewBackend, Options, Rules, Status, Time};
use schema::protection::Ejection;

/// Enough that a fifth differs from the next by four standard deviations.
const SEEDS: u64 = 40;

fn warm(seed: u64, rules: Rules) -> Options {
    Options {
        seed,
        slow_start_ns: Some(10 * SECOND),
        rules,
        ..options()
    }
}

fn newcomer() -> NewBackend {
    let mut new = members(&[1; 11]).remove(10);
    new.name = "added:8080".into();
    new
}

/// Requests to a backend in each of `parts` spans of about 2 s: 100 a second, Poisson, exponential work
/// of 50 ms.
fn counts(rig: &mut Rig, id: BackendId, parts: usize, slower: impl Fn(Time) -> f64) -> Vec<f64> {
    let mut counts = Vec::new();
    for _ in 0..parts {
        let before = rig.sent()[id.index()];
        for _ in 0..200 {
            let (size_ms, at) = (rig.exponential(50.0), rig.dispatcher.now());
            let gap_ms = rig.exponential(10.0);
            let _ = rig.ask((gap_ms * 1e6) as u64, size_ms, |to, _| {
                Fate::Serve(if to == id {
                    size_ms * slower(at)
                } else {
                    size_ms
                })
            });
        }
        counts.push((rig.sent()[id.index()] - before) as f64);
    }
    counts
}

#[test]
fn t16_slow_start_that_starves() {
    let mut rules = vec![
        "round-robin",
        "random",
        "weighted-random",
        "least-request",
        "weighted-least-request",
        "p2c",
        "peak-ewma",
    ];
    rules.extend(ROTATIONS);
    for text in rules {
        // Requests a second, mean of the seeds: five fifths of the window, and ten seconds after it.
        let mut rates = [0.0; 10];
        for seed in 0..SEEDS {
            let mut rig = Rig::with(text, &[1; 10], warm(seed, Rules::plain())).queueing();
            counts(&mut rig, BackendId(0), 1, |_| 1.0);
            let id = rig.add(&newcomer());
            let got = counts(&mut rig, id, 10, |_| 1.0);
            for (rate, n) in rates.iter_mut().zip(got) {
                *rate += n / 2.0 / SEEDS as f64;
            }
        }
        let (fifths, after) = rates.split_at(5);
        assert!(fifths.iter().all(|r| *r > 0.0), "{text}: {rates:?}");
        assert!(fifths.windows(2).all(|w| w[0] < w[1]), "{text}: {rates:?}");
        let after = after.iter().sum::<f64>() / 5.0;
        assert!((after - 100.0 / 11.0).abs() <= 0.909, "{text}: {after}");
        let (expected, within) = match text {
            "smooth-weighted-round-robin" => ([1.0, 2.5, 4.4, 6.3, 8.4], 0.5),
            "least-request" => ([2.0, 5.0, 6.5, 7.5, 8.6], 1.2),
            _ => continue,
        };
        for (rate, expected) in fifths.iter().zip(expected) {
            assert!((rate - expected).abs() <= within, "{text}: {rates:?}");
        }
    }
}

#[test]
fn t17_slow_start_only_after_failures() {
    let cold_from = |from: Time| {
        move |at: Time| {
            if at < from.plus_ns(5 * SECOND) {
                3.0
            } else {
                1.0
            }
        }
    };
    let id = BackendId(10);
    let total = |parts: &[Vec<f64>]| -> Vec<f64> {
        (0..5).map(|i| parts.iter().map(|p| p[i]).sum()).collect()
    };
    // Rules that learn latencies know the one that comes back, and not the one that is new.
    for text in [
        "random",
        "round-robin",
        "smooth-weighted-round-robin",
        "least-request",
    ] {
        let added: Vec<_> = (0..SEEDS)
            .map(|seed| {
                let mut rig = Rig::with(text, &[1; 10], warm(seed, Rules::plain())).queueing();
                counts(&mut rig, BackendId(0), 1, |_| 1.0);
                assert_eq!(rig.add(&newcomer()), id);
                let cold = cold_from(rig.dispatcher.now());
                counts(&mut rig, id, 5, cold)
            })
            .collect();
        let readmitted: Vec<_> = (0..SEEDS)
            .map(|seed| {
                let rules = Rules {
                    ejection: Ejection::DEFAULT,
                    ..Rules::plain()
                };
                let mut rig = Rig::with(text, &[1; 11], warm(seed + 100, rules)).queueing();
                // It fails until it is ejected, then its trial is good.
                let is_in = |rig: &Rig| rig.dispatcher.standing(id).phase == Phase::InService;
                for fails in [true, false] {
                    for _ in 0..10_000 {
                        if is_in(&rig) != fails {
                            break;
                        }
                        let size_ms = rig.exponential(50.0);
                        let _ = rig.ask(10 * MS, size_ms, |to, _| match to == id && fails {
                            true => Fate::Fail(Status::Error, size_ms),
                            false => Fate::Serve(size_ms),
                        });
                    }
                    assert_ne!(is_in(&rig), fails);
                }
                let cold = cold_from(rig.dispatcher.now());
                counts(&mut rig, id, 5, cold)
            })
            .collect();
        let (added, readmitted) = (total(&added), total(&readmitted));
        for (a, b) in added.iter().zip(&readmitted) {
            assert!(
                (a - b).abs() <= 3.0 * (a + b).sqrt(),
                "{text}: {added:?} {readmitted:?}"
            );
        }
        assert!(added[0] < added[4] / 2.0, "{text}: a ramp {added:?}");
    }
    // At process start everybody is cold, and nobody waits.
    let mut rig = Rig::with(
        "smooth-weighted-round-robin",
        &[1; 11],
        warm(1, Rules::plain()),
    );
    for _ in 0..110 {
        let size_ms = 3.0 * rig.exponential(50.0);
        let _ = rig.ask(10 * MS, size_ms, |_, _| Fate::Serve(size_ms));
    }
    assert_eq!(rig.sent(), [10; 11]);
}

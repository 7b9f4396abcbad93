//! Troubles seen in public trackers, each a test named after it.

use super::pools::{answered_pick, dispatcher, letter, sequence, shares, spec};
use crate::{BackendId, Request, Time};

/// Weighted rotations without draws; all but the first are smooth.
const ROTATIONS: &[&str] = &[
    "weighted-round-robin",
    "smooth-weighted-round-robin",
    "edf-wrr",
    "static-stride",
];

fn longest_streak(text: &str) -> usize {
    let mut longest = 0;
    let mut streak = 0;
    let mut last = ' ';
    for c in text.chars() {
        streak = if c == last { streak + 1 } else { 1 };
        last = c;
        longest = longest.max(streak);
    }
    longest
}

#[test]
fn t1_bursts() {
    for text in &ROTATIONS[1..] {
        let picks = sequence(&mut dispatcher(&spec(text), &[4, 3, 2], 1), 90);
        assert!(longest_streak(&picks) <= 2, "{text}: {picks}");
        for k in 1..=90 {
            for (name, weight) in [('A', 4.0), ('B', 3.0), ('C', 2.0)] {
                let count = picks[..k].matches(name).count() as f64;
                assert!(
                    (count - k as f64 * weight / 9.0).abs() <= 1.0,
                    "{text} after {k}"
                );
            }
        }
    }
    let blocks = sequence(
        &mut dispatcher(&spec("weighted-round-robin"), &[4, 3, 2], 1),
        90,
    );
    assert_eq!(longest_streak(&blocks), 4);
}

#[test]
fn t2_everyone_starts_at_the_same_backend() {
    for text in ROTATIONS {
        let text = format!("{text}:start=random");
        let mut counts = [0.0; 3];
        for seed in 0..1000 {
            let first = sequence(&mut dispatcher(&spec(&text), &[4, 3, 2], seed), 1);
            counts[(first.as_bytes()[0] - b'A') as usize] += 0.1;
        }
        assert!((counts[0] - 44.4_f64).abs() < 4.7, "{text}: {counts:?}");
        assert!((counts[1] - 33.3_f64).abs() < 4.5, "{text}: {counts:?}");
        assert!((counts[2] - 22.2_f64).abs() < 3.9, "{text}: {counts:?}");
    }
}

#[test]
fn t2_a_pool_set_again_keeps_its_state() {
    for text in ROTATIONS {
        let mut d = dispatcher(&spec(text), &[99, 1], 1);
        let mut light = 0;
        for _ in 0..200 {
            light += shares(&mut d, 50)[1];
            d.set_weight(d.now(), BackendId(0), 99).unwrap();
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
    let shared = std::sync::Mutex::new(dispatcher(&spec("round-robin"), &[1; 3], 1));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let _ = shared.lock().unwrap().pick(Time::ZERO, &Request::default());
                }
            });
        }
    });
    let d = shared.into_inner().unwrap();
    assert!(d.backends().members().all(|b| b.sent == 4));
}

#[test]
fn t5_weights_lost_after_recovery_or_a_live_change() {
    let near = |counts: &[u64], tolerance: u64| {
        let expected = [400, 300, 200];
        counts
            .iter()
            .zip(expected)
            .all(|(c, e)| c.abs_diff(e) <= tolerance * e / 100)
    };
    for text in ROTATIONS {
        for before in [0, 1, 5, 100, 777] {
            let mut d = dispatcher(&spec(text), &[4, 3, 2], 1);
            sequence(&mut d, before);
            let until = d.now().plus_ns(50_500_000);
            d.eject(d.now(), BackendId(1), until).unwrap();
            let away = sequence(&mut d, 50);
            assert!(!away.contains('B'), "{text}: {away}");
            let back = shares(&mut d, 900);
            assert!(near(&back, 2), "{text} after {before}: {back:?}");

            let mut d = dispatcher(&spec(text), &[1, 1, 1], 1);
            sequence(&mut d, before);
            for (id, weight) in [(0, 4), (1, 3), (2, 2)] {
                d.set_weight(d.now(), BackendId(id), weight).unwrap();
            }
            let after = shares(&mut d, 900);
            assert!(near(&after, 2), "{text} live after {before}: {after:?}");
        }
    }
}

#[test]
fn t10_weights_ignored_on_an_idle_pool() {
    for seed in 0..1000 {
        let mut d = dispatcher(&spec("weighted-least-request"), &[4, 3, 2], seed);
        assert_eq!(letter(answered_pick(&mut d, &Request::default())), 'A');
    }
}

#[test]
fn t7_two_choices_that_are_not() {
    let busy_share = |text: &str| {
        let mut d = dispatcher(&spec(text), &[1, 1], 5);
        d.drain(Time::ZERO, BackendId(1)).unwrap();
        for _ in 0..100 {
            let _ = d.pick(Time::ZERO, &Request::default());
        }
        d.undrain(Time::ZERO, BackendId(1)).unwrap();
        shares(&mut d, 10_000)[0]
    };
    assert_eq!(busy_share("p2c"), 0);
    assert_eq!(busy_share("d-choices"), 0);
    let repeated = busy_share("d-choices:replacement=on");
    assert!((2370..=2630).contains(&repeated), "{repeated}");
}

#[test]
fn t7_each_pair_is_drawn_equally_often() {
    let mut rng = schema::rng::stream(8, schema::rng::Purpose::Strategy, 0, 0);
    let mut draws = crate::choose::Draws::default();
    let mut counts = [0_u32; 3];
    for _ in 0..10_000 {
        let drawn = draws.distinct(3, 2, &mut rng);
        counts[3 - (drawn[0] + drawn[1]) as usize] += 1;
    }
    assert!(counts.iter().all(|c| c.abs_diff(3333) <= 142), "{counts:?}");
}

//! Troubles seen in public trackers, each a test named after it.

use super::models::options;
use super::pools::{answered_pick, dispatcher, letter, members, open_loop, sequence, shares, spec};
use crate::{Answer, BackendId, Dispatcher, Options, Request, Status, Time};

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

/// Share of one backend, in percent, over the last `last` of `requests`, one each `gap_ms`.
fn late_share(
    text: &str,
    n: usize,
    (requests, last, gap_ms): (u64, u64, u64),
    watched: BackendId,
    mut answer: impl FnMut(BackendId, u64) -> (Status, u64),
) -> f64 {
    let mut d = dispatcher(&spec(text), &vec![1; n], 6);
    let mut due: std::collections::BTreeSet<(Time, u64, u8)> = std::collections::BTreeSet::new();
    let mut sent = vec![0; n];
    let mut hits = 0.0;
    for i in 0..requests {
        let now = Time::from_millis(i * gap_ms);
        while let Some((at, id, status)) = due.first().copied().filter(|(at, ..)| *at <= now) {
            due.pop_first();
            let status = if status == 0 {
                Status::Ok
            } else {
                Status::Error
            };
            d.respond(at, id, &Answer::new(status)).unwrap();
        }
        let made = d.pick(now, &Request::default()).unwrap();
        let (status, latency_ms) = answer(made.backend, sent[made.backend.index()]);
        sent[made.backend.index()] += 1;
        let failed = u8::from(status != Status::Ok);
        due.insert((now.plus_ns(latency_ms * 1_000_000), made.id, failed));
        if i >= requests - last && made.backend == watched {
            hits += 100.0 / last as f64;
        }
    }
    hits
}

#[test]
fn t14_one_early_slow_sample_freezes_a_backend_out() {
    let share = |text: &str| {
        let slow = BackendId(2);
        late_share(text, 5, (1500, 500, 20), slow, |id, sent| {
            (Status::Ok, if id == slow && sent < 3 { 1000 } else { 20 })
        })
    };
    for text in [
        "peak-ewma:decay=1s",
        "penalty-peak-ewma:decay=1s",
        "least-request",
        "weighted-least-request",
        "p2c",
        "round-robin",
        "smooth-weighted-round-robin",
    ] {
        let share = share(text);
        assert!((share - 20.0).abs() <= 5.0, "{text}: {share} %");
    }
    for text in [
        "c3:forget=2s",
        "min-response-time:forget=2s",
        "least-time-ttfb:forget=2s",
    ] {
        let share = share(text);
        assert!(share >= 2.0, "{text}: {share} %");
    }
    for text in [
        "c3",
        "min-response-time",
        "least-time-ttfb",
        "least-time",
        "shortest-response",
    ] {
        let share = share(text);
        assert!(share < 4.0, "{text} is flagged and fails: {share} %");
    }
}

#[test]
fn t13_a_fast_failing_backend_attracts_traffic() {
    let share = |text: &str| {
        let broken = BackendId(2);
        let mut rng = schema::rng::stream(4, schema::rng::Purpose::Sizes, 0, 0);
        late_share(text, 3, (3000, 3000, 20), broken, |id, _| {
            if id == broken {
                (Status::Error, 1)
            } else {
                (
                    Status::Ok,
                    1 + (100.0 * schema::rng::exponential(&mut rng)) as u64,
                )
            }
        })
    };
    for text in [
        "peak-ewma:choices=0",
        "least-time-ttfb",
        "shortest-response",
        "c3",
    ] {
        let share = share(text);
        assert!(share > 90.0, "{text} is flagged and attracts: {share} %");
    }
    assert!(share("least-request:ties=random") > 50.0);
    assert!(share("penalty-peak-ewma") <= 6.0);
    let rotation = share("round-robin");
    assert!(
        (rotation - 33.3).abs() < 0.1,
        "rotations are neutral: {rotation}"
    );
}

#[test]
fn t16_slow_start_that_starves() {
    for text in [
        "smooth-weighted-round-robin",
        "random",
        "least-request",
        "p2c",
        "peak-ewma",
    ] {
        let mut fifths = [0.0; 6];
        for seed in 0..20 {
            let options = Options {
                seed,
                slow_start_ns: Some(10_000_000_000),
                ..options()
            };
            let mut d = Dispatcher::new(&spec(text), &members(&[1; 10]), options).unwrap();
            open_loop(&mut d, 100, 10_000_000, |_| 50_000_000);
            let mut added = members(&[1; 11]).remove(10);
            added.name = "added:8080".into();
            let id = d.add(d.now(), &added).unwrap();
            for fifth in &mut fifths {
                let picks = open_loop(&mut d, 200, 10_000_000, |_| 50_000_000);
                *fifth += picks[id.index()] as f64 / 20.0 / 2.0;
            }
        }
        // Requests a second; the full share is 100 / 11 = 9.09.
        assert!(fifths.iter().all(|f| *f > 0.0), "{text}: {fifths:?}");
        assert!(
            fifths.windows(2).take(4).all(|w| w[0] < w[1]),
            "{text}: {fifths:?}"
        );
        assert!((fifths[5] - 9.09).abs() < 1.5, "{text}: {fifths:?}");
    }
}

#[test]
fn t17_slow_start_only_after_failures() {
    let ramp = |readmitted: bool| {
        let mut total = 0;
        for seed in 0..20 {
            let options = Options {
                seed,
                slow_start_ns: Some(5_000_000_000),
                ..options()
            };
            let n = if readmitted { 11 } else { 10 };
            let mut d = Dispatcher::new(&spec("random"), &members(&vec![1; n]), options).unwrap();
            let id = if readmitted {
                let id = BackendId(10);
                d.eject(d.now(), id, Time::from_millis(1)).unwrap();
                id
            } else {
                let mut added = members(&[1; 11]).remove(10);
                added.name = "added:8080".into();
                d.add(Time::from_millis(1), &added).unwrap()
            };
            total += open_loop(&mut d, 500, 10_000_000, |_| 5_000_000)[id.index()];
        }
        total as f64
    };
    let (added, readmitted) = (ramp(false), ramp(true));
    assert!(
        (added - readmitted).abs() < 3.0 * (added + readmitted).sqrt(),
        "{added} {readmitted}"
    );
    // Half of the full share on the way up; the full share at a process start.
    assert!((added / 20.0 - 500.0 / 22.0).abs() < 4.0, "{added}");
    let options = Options {
        slow_start_ns: Some(5_000_000_000),
        ..options()
    };
    let mut d = Dispatcher::new(&spec("round-robin"), &members(&[1; 11]), options).unwrap();
    assert_eq!(
        open_loop(&mut d, 110, 10_000_000, |_| 5_000_000),
        vec![10; 11]
    );
}

//! Wrong and extreme use, tried on every registry entry.

use super::pools::{cases, dispatcher, members, open_loop, shares, spec};
use crate::dispatcher::MAX_PROBES;
use crate::registry::ENTRIES;
use crate::{
    Answer, BackendId, Dispatcher, PoolError, Report, Request, Source, Spec, Status, Time,
};
use schema::rng::{Purpose, below, stream};

const POOL: [u32; 3] = [4, 3, 2];

#[test]
fn every_misspelled_name_is_answered_with_the_nearest() {
    for entry in ENTRIES {
        for name in std::iter::once(&entry.name).chain(entry.aliases) {
            // A letter is lost, doubled, or two change places; short names are too near to others.
            let at = name.len() / 2;
            if name.len() < 6 || !name.is_char_boundary(at) {
                continue;
            }
            let (head, tail) = name.split_at(at);
            let lost = format!("{head}{}", &tail[1..]);
            let doubled = format!("{head}{}{tail}", &tail[..1]);
            let swapped = format!("{head}{}{}{}", &tail[1..2], &tail[..1], &tail[2..]);
            for wrong in [lost, doubled, swapped] {
                let Err(e) = wrong.parse::<Spec>() else {
                    continue;
                };
                let text = e.to_string();
                assert!(text.starts_with(&format!("unknown strategy \"{wrong}\"; known: ")));
                assert!(text.ends_with(&format!("; nearest: {name}")), "{text}");
            }
        }
        for parameter in entry.parameters {
            let wrong = format!("{}:{}x=1", entry.name, parameter.name);
            let text = wrong.parse::<Spec>().expect_err(&wrong).to_string();
            assert!(
                text.ends_with(&format!("; nearest: {}", parameter.name)),
                "{text}"
            );
        }
    }
}

#[test]
fn every_parameter_refuses_what_is_no_value_of_it() {
    for entry in ENTRIES {
        for parameter in entry.parameters {
            for value in [
                "nan",
                "-1",
                "1e400",
                "inf",
                "",
                " 1",
                "0x10",
                "99999999999999999999",
                "\u{7f}",
            ] {
                let text = format!("{}:{}={value}", entry.name, parameter.name);
                let Err(e) = text.parse::<Spec>() else {
                    // A latency model may have any name; a wrong one is refused when it is looked up.
                    assert_eq!(parameter.name, "model", "{text} was taken");
                    continue;
                };
                let e = e.to_string();
                assert!(e.contains(parameter.name), "{text}: {e}");
                assert!(e.is_ascii() && !e.contains('\u{7f}'), "{text}: {e:?}");
            }
        }
    }
}

#[test]
fn weights_out_of_bounds_change_nothing_whoever_picks() {
    for case in cases() {
        let mut d = dispatcher(&case, &POOL, 31);
        let before = d.clone();
        for weight in [0, 65_536, u32::MAX] {
            let refused = d.set_weight(Time::ZERO, BackendId(1), weight);
            assert_eq!(refused, Err(PoolError::BadWeight(weight)), "{case}");
        }
        assert_eq!(picks_of(d), picks_of(before), "{case}");
    }
}

fn picks_of(mut d: Dispatcher) -> Vec<u64> {
    shares(&mut d, 200)
}

#[test]
fn with_everyone_ejected_nobody_is_picked_until_one_comes_back() {
    for case in cases() {
        let mut d = dispatcher(&case, &POOL, 32);
        open_loop(&mut d, 50, 1_000_000, |_| 5_000_000);
        let now = d.now();
        for (id, ms) in [(0, 300), (1, 200), (2, 400)] {
            let until = now.plus_ns(ms * 1_000_000);
            d.eject(now, BackendId(id), until).unwrap();
        }
        let request = Request::default();
        for ms in [0, 100, 199] {
            assert_eq!(
                d.pick(now.plus_ns(ms * 1_000_000), &request),
                None,
                "{case}"
            );
        }
        let first = d.pick(now.plus_ns(200_000_000), &request).unwrap();
        assert_eq!(first.backend, BackendId(1), "{case}");
        d.respond(d.now(), first.id, &Answer::new(Status::Ok))
            .unwrap();
        // Gone altogether, and a new one in their place.
        for id in 0..3 {
            d.remove(d.now(), BackendId(id)).unwrap();
        }
        assert_eq!(d.pick(d.now(), &request), None, "{case}");
        let mut new = members(&[5]).remove(0);
        new.name = "new:1".into();
        let id = d.add(d.now(), &new).unwrap();
        assert_eq!(
            d.pick(d.now(), &request).map(|made| made.backend),
            Some(id),
            "{case}"
        );
    }
}

#[test]
fn time_that_goes_back_counts_as_the_latest_seen() {
    for case in cases() {
        let run = |backward: bool| {
            let mut d = dispatcher(&case, &POOL, 33);
            let mut rng = stream(5, Purpose::Faults, 0, 0);
            let (mut latest, mut open, mut picks) = (Time::ZERO, Vec::new(), Vec::new());
            for i in 0..400_u64 {
                latest = latest.plus_ns(below(&mut rng, 5_000_000));
                let back_ns = below(&mut rng, 3) * below(&mut rng, 1_000_000_000);
                let earlier = Time::from_nanos(latest.as_nanos().saturating_sub(back_ns));
                // What counts is the latest one seen, which is told here first.
                d.let_time_pass(latest);
                let now = if backward { earlier } else { latest };
                let url = format!("/items/{i}");
                let request = Request {
                    url: &url,
                    ..Request::default()
                };
                let made = d.pick(now, &request).unwrap();
                assert_eq!(made.at, latest, "{case}");
                picks.push(made.backend);
                open.push(made.id);
                if i % 3 > 0 {
                    let id = open.swap_remove(below(&mut rng, open.len() as u64) as usize);
                    d.respond(now, id, &Answer::new(Status::Ok)).unwrap();
                }
                if i % 10 == 0 {
                    let id = BackendId((i / 10 % 3) as u32);
                    let mark = d.mark_poll(now, id);
                    let report = Report {
                        active: Some(3),
                        ..Report::empty(Source::Poll, 0)
                    };
                    d.report(now, id, mark, report).unwrap();
                }
            }
            picks
        };
        assert_eq!(run(true), run(false), "{case}");
    }
}

#[test]
fn answers_to_what_is_not_open_change_nothing() {
    for case in cases() {
        let mut d = dispatcher(&case, &POOL, 34);
        let made = d.pick(Time::ZERO, &Request::default()).unwrap();
        d.respond(Time::from_millis(1), made.id, &Answer::new(Status::Ok))
            .unwrap();
        let before = d.clone();
        for status in [Status::Ok, Status::Error, Status::Cancelled] {
            for id in [made.id, made.id + 1, u64::MAX] {
                let refused = d.respond(Time::from_millis(1), id, &Answer::new(status));
                assert_eq!(refused, Err(crate::UnknownDispatch(id)), "{case}");
            }
        }
        assert!(d.backends().members().all(|b| b.in_flight == 0), "{case}");
        assert_eq!(picks_of(d), picks_of(before), "{case}");
    }
}

#[test]
fn a_hundred_thousand_backends_are_served_or_refused_with_the_bound() {
    // One pool for all: a strategy is changed live far faster than such a pool is made.
    let mut d = dispatcher(&spec("random"), &vec![1; 100_000], 35);
    for entry in ENTRIES {
        let has_points = entry.parameters.iter().any(|p| p.name == "points");
        if has_points {
            // Rings of so many are above the bound at their default.
            let refused = d.set_strategy(d.now(), &Spec::of(entry));
            let text = refused.expect_err(entry.name).to_string();
            assert!(text.contains("8388608"), "{text}");
        }
        let points = if has_points { ":points=5" } else { "" };
        let text = format!("{}{points}", entry.name);
        d.set_strategy(d.now(), &spec(&text)).unwrap();
        for url in ["/a", "/b", "/c"] {
            let request = Request {
                url,
                ..Request::default()
            };
            let made = d.pick(d.now(), &request).unwrap();
            d.respond(d.now(), made.id, &Answer::new(Status::Ok))
                .unwrap();
        }
        d.drain(d.now(), BackendId(50_000)).unwrap();
        let made = d.pick(d.now(), &Request::default()).unwrap();
        assert_ne!(made.backend, BackendId(50_000), "{text}");
        d.respond(d.now(), made.id, &Answer::new(Status::Ok))
            .unwrap();
        d.undrain(d.now(), BackendId(50_000)).unwrap();
    }
}

#[test]
fn probes_that_no_driver_takes_do_not_pile_up() {
    for case in cases().iter().filter(|c| c.entry().needs_probes) {
        let mut d = dispatcher(case, &POOL, 36);
        let mut taking = d.clone();
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        for i in 0..4000 {
            let now = Time::from_millis(i);
            for d in [&mut d, &mut taking] {
                let made = d.pick(now, &Request::default()).unwrap();
                d.respond(now, made.id, &Answer::new(Status::Ok)).unwrap();
            }
            taking.take_probes(&mut taken);
        }
        d.take_probes(&mut left);
        // The oldest gave way.
        let last = taken.len().saturating_sub(MAX_PROBES);
        assert_eq!(left, taken[last..], "{case}");
        d.take_probes(&mut left);
        assert!(left.len() <= MAX_PROBES, "{case}: handed over once");
    }
}
